// Dictionaries of structured fields (RFC 9651 section 3.2), as far as directives need them: keys
// with the type of their item and the value of integers and booleans. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clockwise::cache::structured {

enum class Type : std::uint8_t { integer, decimal, string, token, bytes, boolean, date, list };

struct Entry {
  std::string key;
  Type type = Type::boolean;
  std::int64_t integer = 0;  // of Type::integer
  bool boolean = true;       // of Type::boolean
};

// The members of all lines together, parameters left out; of two with one key the later one counts,
// in the place of the first. Nothing when any of it breaks the grammar.
[[nodiscard]] std::optional<std::vector<Entry>> parse_dictionary(
    std::span<const std::string_view> lines);

}  // namespace clockwise::cache::structured
