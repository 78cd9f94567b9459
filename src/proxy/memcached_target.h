// Which memcached servers hold an item. One thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "proxy/context.h"
#include "upstream/memcached_server.h"
#include "upstream/owners.h"

namespace clockwise::proxy {

// Where the ring has an item: of `key`, as it is on the wire, without the pool's namespace.
[[nodiscard]] ring::Position position_of(const PoolView& view, std::string_view key);

// Whom to ask for what stands there, but for those that were tried: as upstream::choose(), and a
// server on trial is tried by whoever comes, and judged by every answer.
[[nodiscard]] std::optional<ring::ServerIndex> usable_server(
    const PoolView& view, ring::Position position, std::span<const ring::ServerIndex> tried);

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

// Whether several servers hold each item.
[[nodiscard]] inline bool has_replicas(const PoolView& view) noexcept {
  return view.pool->config.ring.replicas > 1;
}
// In the place of who stands in for all of them: behind the last, and without a mark in uniques
// (memcached::unique_at).
inline constexpr std::uint32_t kNoOwner = config::kMaxReplicas;
// Those that hold an item, the home first. REQUIRES: the ring is not empty.
[[nodiscard]] upstream::Owners owners_of(const PoolView& view, ring::Position position);
// By what is known of it now.
[[nodiscard]] bool can_be_asked(const PoolView& view, ring::ServerIndex server) noexcept;
// The place of the first of the owners that can be asked, counted as by target_of(). Nothing: none
// of them can, and target_of() says what is left. REQUIRES: the ring is not empty.
[[nodiscard]] std::optional<std::uint32_t> first_owner(PoolView& view, std::string_view key,
                                                       ring::Position position,
                                                       const Context& context);
// The server at that place.
[[nodiscard]] upstream::MemcachedServer& owner_at(PoolView& view, ring::Position position,
                                                  std::uint32_t place);

// The owner, whether or not it can be asked. REQUIRES: the ring is not empty.
[[nodiscard]] upstream::MemcachedServer& home_of(PoolView& view, ring::Position position);

// The owner before the newest change of the ring, while that is remembered; null: there is none.
[[nodiscard]] upstream::MemcachedServer* previous_home_of(PoolView& view, std::string_view key,
                                                          const Context& context);

}  // namespace clockwise::proxy
