// The target of an API request: path segments and query parameters, percent-decoded octet for
// octet ("+" is a plus). Whom an absolute target names is not looked at: it came here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clockwise::admin {

struct Target {
  std::vector<std::string> path;  // "/a/b%20c/" and "http://x/a/b%20c" -> "a", "b c"
  std::vector<std::pair<std::string, std::string>> query;

  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> first(std::string_view name) const;
};

// Nothing when a "%" is not followed by two hex digits.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);
[[nodiscard]] std::optional<Target> parse_target(std::string_view text);

}  // namespace clockwise::admin
