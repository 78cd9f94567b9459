// What only a pool of memcached servers has.
#pragma once

#include "config/field.h"

namespace clockwise::config {

// The defaults of a pool where its servers speak memcached.
void begin_memcached_pool(Pool& pool);

// `memcached:`.
void read_memcached(const Field& field, Memcached& memcached);

}  // namespace clockwise::config
