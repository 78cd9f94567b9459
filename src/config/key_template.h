// The template of a ring key: literals and placeholders such as `{uri}`.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::config {

// The template in its one supported form, `{uri}`; empty text means that too. Tells a mistyped
// placeholder from one that this release does not know yet.
[[nodiscard]] Result<std::string> parse_key_template(std::string_view text);

}  // namespace clockwise::config
