// The caches of a configuration.
#pragma once

#include <string_view>
#include <vector>

#include "config/field.h"

namespace clockwise::config {

// Sorted by name.
[[nodiscard]] std::vector<Cache> read_caches(const Field& field);

// The name of one of `caches`, or off.
void read_cache_name(const Field& field, std::span<const std::string_view> caches,
                     std::optional<std::string>& out);

// Gives each memcached pool with `fill` a small cache of its own, POOL.fill: in it one fetch of the
// fallback serves all who wait, on its way into the pool.
void add_fill_caches(Config& config);

// Reports a `pool` that is none of memcached servers; warns of two caches with one namespace there.
// `field` is what `config.caches` was read from.
void check_pools_of_caches(const Field& field, const Config& config);

// Of caches that take memory in nobody's service. `field` is what `config.caches` was read from.
void warn_of_unused_caches(const Field& field, const Config& config);

}  // namespace clockwise::config
