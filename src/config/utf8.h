// Small UTF-8 tools: validation, counting by character, UTF-16 to UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clockwise::config::utf8 {

struct Decoded {
  char32_t code = 0;
  std::size_t length = 1;  // bytes to step over, also when invalid
  bool valid = false;
};

// The first character of `text`. Overlong forms, surrogates and cut sequences are invalid.
// REQUIRES: !text.empty().
[[nodiscard]] Decoded decode(std::string_view text) noexcept;

// `count` characters from character `first` on; fewer at the end.
[[nodiscard]] std::string_view slice(std::string_view text, std::size_t first,
                                     std::size_t count) noexcept;

[[nodiscard]] std::size_t length(std::string_view text) noexcept;  // in characters

// No control character, no mark that reorders text.
[[nodiscard]] bool is_printable(char32_t code) noexcept;

// True when `text` is valid and all of it printable: one line, nothing hidden.
[[nodiscard]] bool is_one_line(std::string_view text) noexcept;

// Drops a byte order mark; turns UTF-16 that has one into UTF-8. A lone surrogate becomes a byte
// that decode() refuses. Other text passes unchanged.
[[nodiscard]] std::string from_marked(std::string bytes);

}  // namespace clockwise::config::utf8
