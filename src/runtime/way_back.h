// The way back to the placement before a change: what of the history runs again, and what an
// operator has to edit where the list comes from a file.
//
// Pure.
#pragma once

#include <string>

#include "config/model.h"
#include "upstream/placed.h"

namespace clockwise::runtime {

// The placement of the history with each server where it is by now: a server that still runs, or
// that the file still has, keeps its newest address and zone, which decide no owner. Of one that is
// gone from both, all is as it was.
[[nodiscard]] upstream::Placed brought_up_to_date(upstream::Placed history,
                                                  const config::Pool& running,
                                                  const config::Pool& written);

// "remove cache-5; add cache-2 at 10.0.0.12:8080, weight 2; set the weight of cache-1 to 1": what
// leads from the placement of `now` to `there`. Addresses of servers that both have are left alone,
// the order is named where it decides an owner. Empty: nothing.
[[nodiscard]] std::string edits(const config::Pool& now, const upstream::Placed& there);

}  // namespace clockwise::runtime
