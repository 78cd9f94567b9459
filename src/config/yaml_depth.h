// How deep the brackets of a YAML text are nested and how much is in one of them, found out before
// the YAML library reads it.
//
// The library keeps every token of a bracket until the bracket is closed, hundreds of octets for
// one of the text: a limit that counts what it hands out would come too late. So the text is cut
// into tokens here in the way of the library, in one pass and without keeping them. What the
// library will refuse may be cut in another way, as long as no bracket is missed.
//
// Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace clockwise::config {

// The offset of the first bracket that opens a list or map inside of `levels` others, blocks
// counted; yaml_text::kNone when there is none.
[[nodiscard]] std::size_t bracket_deeper_than(std::string_view text, std::size_t levels);

// The offset of the first comma that has `commas` others before it in one outermost bracket;
// yaml_text::kNone when there is none.
[[nodiscard]] std::size_t bracket_wider_than(std::string_view text, std::size_t commas);

}  // namespace clockwise::config
