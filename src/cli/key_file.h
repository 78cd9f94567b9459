// `plan --keys`: what a change does to the keys of a file.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "upstream/plan.h"

namespace clockwise::cli {

// One pool's change and what was counted of it.
struct CountedChange {
  upstream::Side before, after;
  upstream::KeyCount keys = {};
};

// Reads the keys of a file ("-": standard input), a plain list or an access log, and counts for
// each change which of them it moves. The keys of a log are made by the template of the pool, with
// what the log holds of a request. A progress bar on a terminal. Says on stderr how many lines had
// no request, and how many keys lack a part that the template asks for. Fails when the file cannot
// be read; the error does not name it.
[[nodiscard]] Result<void> count_keys(const std::string& file, std::span<CountedChange> changes);

}  // namespace clockwise::cli
