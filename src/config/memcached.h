// What only a pool of memcached servers has.
#pragma once

#include "config/field.h"

namespace clockwise::config {

// The defaults of a pool where its servers speak memcached.
void begin_memcached_pool(Pool& pool);

// `memcached:` of a pool whose fallback was read.
void read_memcached(const Field& field, Pool& pool);

}  // namespace clockwise::config
