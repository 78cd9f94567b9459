// Which memcached server holds an item. One thread.
#pragma once

#include <optional>
#include <string_view>

#include "proxy/context.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

// Where the ring has an item: of `key`, as it is on the wire, without the pool's namespace.
[[nodiscard]] ring::Position position_of(const PoolView& view, std::string_view key);

struct MemcachedTarget {
  upstream::MemcachedServer* server = nullptr;
  ring::ServerIndex home = 0;   // the owner
  ring::ServerIndex index = 0;  // whom to ask: the owner, or who stands in for it
  [[nodiscard]] bool stands_in() const noexcept { return index != home; }
};

// Whom to ask for an item, by what is known of the servers now. Counts the request as routed, and
// as moved where the newest change of the ring moved it. Nothing: the owner is away and nobody may
// stand in, or nobody is on the ring.
[[nodiscard]] std::optional<MemcachedTarget> target_of(PoolView& view, std::string_view key,
                                                       ring::Position position,
                                                       const Context& context);

// The owner, whether or not it can be asked. REQUIRES: the ring is not empty.
[[nodiscard]] upstream::MemcachedServer& home_of(PoolView& view, ring::Position position);

// The owner before the newest change of the ring, while that is remembered; null: there is none.
[[nodiscard]] upstream::MemcachedServer* previous_home_of(PoolView& view, std::string_view key,
                                                          const Context& context);

}  // namespace clockwise::proxy
