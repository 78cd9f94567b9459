// What a memcached listener says of itself: the answers to version and stats. One thread.
#pragma once

#include <string>

#include "proxy/context.h"
#include "proxy/worker.h"

namespace clockwise::proxy {

// "1.6.18": the lowest of the pool's servers that are not away; empty: it is known of none.
[[nodiscard]] std::string memcached_version(const PoolView& view);

// STAT lines and END, summed over all workers.
[[nodiscard]] std::string memcached_stats(const ListenerSpec& listener, const PoolView& view,
                                          const Context& context);

}  // namespace clockwise::proxy
