// The syntax of haproxy.cfg: lines of words.
//
// Quotes, escapes and comments as HAProxy reads them; variables of the environment are left as they
// are written.
#pragma once

#include <variant>
#include <vector>

#include "import/word.h"

namespace clockwise::importer {

using ConfigLine = std::vector<Word>;  // never empty

// Lines without a word are left out.
[[nodiscard]] std::variant<std::vector<ConfigLine>, config::Problem> parse_haproxy(
    const config::Source& source);

}  // namespace clockwise::importer
