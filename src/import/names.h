// Names for pools, servers and listeners, made from what the source calls them.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace clockwise::importer {

// A valid name ([A-Za-z0-9._:-]{1,64}) that depends on `text` alone, so that the same server is
// called the same in the next import, whatever stands beside it: `unix:` and brackets are dropped,
// any other run of foreign characters and each `:` becomes `-`. An address gets dashes for its dots
// too: a name is an identity, not a place. Text without a usable character becomes `fallback`.
[[nodiscard]] std::string name_from(std::string_view text, std::string_view fallback);

// With the letters A to Z in lower case.
[[nodiscard]] std::string lower_case(std::string text);

// Names that are unique among themselves: a second `a` becomes `a-2`.
class Names {
 public:
  [[nodiscard]] std::string take(std::string name);

 private:
  std::set<std::string> taken_;
};

}  // namespace clockwise::importer
