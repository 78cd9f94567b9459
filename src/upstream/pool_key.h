// The key template of a pool, for whoever has to name the owner of a request.
#pragma once

#include "config/model.h"
#include "http/key_template.h"

namespace clockwise::upstream {

// REQUIRES: `ring` was validated, as all of a loaded configuration is.
[[nodiscard]] http::KeyTemplate key_template(const config::Ring& ring);

}  // namespace clockwise::upstream
