// What a command of memcached counts as in the metrics. Pure.
#pragma once

#include <optional>

#include "memcached/command.h"
#include "memcached/reply.h"
#include "metrics/cells.h"

namespace clockwise::proxy {

// Nothing: it is not counted.
[[nodiscard]] std::optional<metrics::MemcachedVerb> counted_as(memcached::Verb verb) noexcept;
// Of a command about one item.
[[nodiscard]] metrics::MemcachedResult result_of(memcached::Verb verb,
                                                 memcached::ReplyKind kind) noexcept;

}  // namespace clockwise::proxy
