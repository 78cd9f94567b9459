// What an operator has to edit where a rollback cannot do it: the pool's list comes from a file.
//
// Pure.
#pragma once

#include <string>

#include "config/model.h"
#include "upstream/placed.h"

namespace clockwise::runtime {

// "remove cache-5; add cache-2 at 10.0.0.12:8080, weight 2; set the weight of cache-1 to 1": what
// leads from the servers and the ring of `now` to those of `there`. Empty: nothing.
[[nodiscard]] std::string edits(const config::Pool& now, const upstream::Placed& there);

}  // namespace clockwise::runtime
