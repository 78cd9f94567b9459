#include "proxy/memcached_target.h"

#include "http/cache_answer.h"
#include "upstream/choose.h"

namespace clockwise::proxy {

using metrics::at;

namespace {

// The owner before the newest change of the ring, which may have left the list; nothing: no change
// is remembered.
std::optional<ring::ServerIndex> previous_home(const PoolView& view, ring::Position position,
                                               std::string_view key, const Context& context) {
  if (!view.pool->watch) return std::nullopt;
  const upstream::RemapWatch& watch = *view.pool->watch;
  if (watch.previous->empty() || context.loop.now() > view.watch_until) return std::nullopt;
  if (!watch.same_positions) position = watch.previous->hash(key);
  return watch.now[watch.previous->owner(position)];
}

// By the ring before the newest change: where that had the item, was it another server?
void count_remapped(const PoolView& view, ring::Position position, std::string_view key,
                    ring::ServerIndex home, const Context& context) {
  const auto before = previous_home(view, position, key, context);
  if (before && *before != home) view.pool->watch->requests.at(context.worker).cell.add();
}

void count_routed(PoolView& view, ring::Position position, bool home, const Context& context) {
  at(view.cells->routed, home ? metrics::Routed::home : metrics::Routed::failover).add();
  view.recent->add({position, context.loop.now(), http::CacheAnswer::unknown});
}

}  // namespace

ring::Position position_of(const PoolView& view, std::string_view key) {
  return view.pool->ring->hash(key);
}

upstream::MemcachedServer& home_of(PoolView& view, ring::Position position) {
  return *view.memcached[view.pool->ring->owner(position)];
}

std::optional<ring::ServerIndex> usable_server(const PoolView& view, ring::Position position,
                                               std::span<const ring::ServerIndex> tried) {
  const upstream::Pool& pool = *view.pool;
  const auto next = upstream::choose(pool, position, tried);
  if (!next) return std::nullopt;
  if (next->trial) pool.health->not_tried(*pool.servers[next->server].health);
  return next->server;
}

std::optional<MemcachedTarget> target_of(PoolView& view, std::string_view key,
                                         ring::Position position, const Context& context) {
  const upstream::Pool& pool = *view.pool;
  if (pool.ring->empty()) return std::nullopt;
  const ring::ServerIndex home = pool.ring->owner(position);
  if (pool.watch) count_remapped(view, position, key, home, context);
  ring::ServerIndex index = home;
  if (!pool.health->all_well()) {
    const auto next = usable_server(view, position, {});
    if (!next) return std::nullopt;
    index = *next;
  }
  count_routed(view, position, index == home, context);
  return MemcachedTarget{view.memcached[index], home, index};
}

upstream::Owners owners_of(const PoolView& view, ring::Position position) {
  return {view.pool->config, *view.pool->ring, position};
}

bool can_be_asked(const PoolView& view, ring::ServerIndex server) noexcept {
  const upstream::HealthBoard& board = *view.pool->health;
  const upstream::HealthMark& mark = *view.pool->servers[server].health;
  if (view.memcached[server]->away()) return false;
  return board.all_well() || mark.usable() || mark.awaits_trial() || board.panic();
}

std::optional<std::uint32_t> first_owner(PoolView& view, std::string_view key,
                                         ring::Position position, const Context& context) {
  const ring::ServerIndex home = view.pool->ring->owner(position);
  std::uint32_t place = 0;
  if (!can_be_asked(view, home)) {
    const upstream::Owners owners = owners_of(view, position);
    do {
      if (++place >= owners.size()) return std::nullopt;
    } while (!can_be_asked(view, owners[place]));
  }
  if (view.pool->watch) count_remapped(view, position, key, home, context);
  count_routed(view, position, place == 0, context);
  return place;
}

upstream::MemcachedServer& owner_at(PoolView& view, ring::Position position, std::uint32_t place) {
  const ring::ServerIndex server =
      place == 0 ? view.pool->ring->owner(position) : owners_of(view, position)[place];
  return *view.memcached[server];
}

upstream::MemcachedServer* previous_home_of(PoolView& view, std::string_view key,
                                            const Context& context) {
  const auto before = previous_home(view, position_of(view, key), key, context);
  if (!before || *before == upstream::RemapWatch::kGone) return nullptr;
  return view.memcached[*before];
}

}  // namespace clockwise::proxy
