// What nginx hashes, in the words of a key template here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::importer {

// The text that `set $NAME TEXT;` gives to a variable of the file; nothing when it is not set.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

// "$host$request_uri" -> "{host}{uri}". The error names what has no equal: "$is_args has no equal
// in a key template".
[[nodiscard]] Result<std::string> nginx_key(std::string_view text, const Variables& variables);

}  // namespace clockwise::importer
