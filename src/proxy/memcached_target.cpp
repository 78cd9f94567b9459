#include "proxy/memcached_target.h"

#include "http/cache_answer.h"
#include "upstream/choose.h"

namespace clockwise::proxy {

using metrics::at;

namespace {

// By the ring before the newest change: where that had the item, was it another server?
void count_remapped(const PoolView& view, ring::Position position, std::string_view key,
                    ring::ServerIndex home, const Context& context) {
  upstream::RemapWatch& watch = *view.pool->watch;
  if (watch.previous->empty() || context.loop.now() > view.watch_until) return;
  if (!watch.same_positions) position = watch.previous->hash(key);
  if (watch.now[watch.previous->owner(position)] != home)
    watch.requests.at(context.worker).cell.add();
}

}  // namespace

ring::Position position_of(const PoolView& view, std::string_view key) {
  return view.pool->ring->hash(key);
}

upstream::MemcachedServer& home_of(PoolView& view, ring::Position position) {
  return *view.memcached[view.pool->ring->owner(position)];
}

std::optional<MemcachedTarget> target_of(PoolView& view, std::string_view key,
                                         ring::Position position, const Context& context) {
  const upstream::Pool& pool = *view.pool;
  if (pool.ring->empty()) return std::nullopt;
  const ring::ServerIndex home = pool.ring->owner(position);
  if (pool.watch) count_remapped(view, position, key, home, context);
  ring::ServerIndex index = home;
  if (!pool.health->all_well()) {
    const auto next = upstream::choose(pool, position, {});
    if (!next) return std::nullopt;
    // A server on trial is tried by whoever comes, and judged by every answer.
    if (next->trial) pool.health->not_tried(*pool.servers[next->server].health);
    index = next->server;
  }
  at(view.cells->routed, index == home ? metrics::Routed::home : metrics::Routed::failover).add();
  view.recent->add({position, context.loop.now(), http::CacheAnswer::unknown});
  return MemcachedTarget{view.memcached[index], home, index};
}

}  // namespace clockwise::proxy
