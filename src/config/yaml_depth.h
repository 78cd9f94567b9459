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
#include <optional>
#include <string_view>

#include "config/yaml_text.h"

namespace clockwise::config {

struct BracketLimits {
  std::size_t levels = yaml_text::kNone;  // of lists and maps inside of each other, blocks counted
  std::size_t commas = yaml_text::kNone;  // of one outermost bracket
};

// Where a text goes beyond them.
struct BracketBeyond {
  std::size_t offset;  // of the bracket that is one level too deep, or of the first comma too many
  bool too_wide;       // it is the comma
};

// The first place beyond the limits; nothing when there is none.
[[nodiscard]] std::optional<BracketBeyond> bracket_beyond(std::string_view text,
                                                          const BracketLimits& limits);

}  // namespace clockwise::config
