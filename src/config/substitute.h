// `${NAME}` and `${NAME:-default}` in a scalar, taken from the environment.
//
// Done after the YAML is parsed, so a value can never add keys or lines. `:-` also stands in for an
// empty variable, as in a shell. `$${` is a literal `${`; any other `$` is itself.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/load.h"

namespace clockwise::config {

struct Substituted {
  std::string text;
  bool changed = false;  // a variable was taken
};

// The error is a whole sentence about the variable; it never holds a value.
[[nodiscard]] Result<Substituted> substitute(std::string_view text, const Environment& environment);

}  // namespace clockwise::config
