// What live traffic says about a change of a pool: which of the keys that were asked for lately
// would move, and how many fetches that costs.
//
// Computed on demand from the requests that each worker remembers (upstream/recent.h); any thread.
#pragma once

#include <optional>

#include "upstream/plan.h"
#include "upstream/recent.h"

namespace clockwise::upstream {

struct Traffic {
  // Over the last minute, or over what the workers remember where that is less; nothing before the
  // first request.
  std::optional<double> requests_per_second;
  // Of the remembered answers that tell (http/cache_answer.h); nothing when none does.
  std::optional<double> hit_ratio;
};

[[nodiscard]] Traffic traffic_of(const Recent& recent, SteadyMs now);

// How many of the remembered requests would change their owner. Nothing when the rings hash keys
// differently: a position then means nothing to the other ring.
[[nodiscard]] std::optional<KeyCount> seen_keys(const Recent& recent, const Side& before,
                                                const Side& after);

// Adds to the report of a change what it means for the traffic there is: seen_keys and cost.
void add_traffic(Report& report, const Recent& recent, const Side& before, const Side& after,
                 SteadyMs now);

}  // namespace clockwise::upstream
