// The body of PUT /api/v1/pools/P/servers/S: what of a server shall be another.
//
// Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "upstream/reload_port.h"

namespace clockwise::admin {

// {"state": "active" or "draining" or "down", "weight": number}, at least one of them. The error
// names the place or the field, what was found and what is wanted. The names of pool and server are
// left empty.
[[nodiscard]] Result<upstream::ServerChange> read_server_change(std::string_view body);

}  // namespace clockwise::admin
