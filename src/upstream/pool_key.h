// What a pool hashes of a request: its key template, and whether two versions of a pool agree on
// it.
#pragma once

#include "config/model.h"
#include "http/key_template.h"
#include "upstream/plan.h"

namespace clockwise::upstream {

// REQUIRES: `ring` was validated, as all of a loaded configuration is.
[[nodiscard]] http::KeyTemplate key_template(const config::Ring& ring);

// Is what is hashed of a request the same text, whatever the hash?
[[nodiscard]] bool same_key(const config::Ring& before, const config::Ring& after);

// Does every request have one position for both sides? REQUIRES: both pools exist.
[[nodiscard]] bool same_positions(const Side& before, const Side& after);

}  // namespace clockwise::upstream
