#include "upstream/choose.h"

#include <algorithm>

namespace clockwise::upstream {

namespace {

HealthMark& mark_of(const Pool& pool, ring::ServerIndex server) {
  return *pool.servers[server].health;
}

// As far as its health goes.
std::optional<Choice> take(const Pool& pool, ring::ServerIndex server) {
  if (mark_of(pool, server).usable()) return Choice{server, false};
  if (mark_of(pool, server).begin_trial()) return Choice{server, true};
  return std::nullopt;
}

}  // namespace

std::optional<Choice> choose(const Pool& pool, ring::Position position,
                             std::span<const ring::ServerIndex> tried) {
  const bool home_alone = pool.config.failover == config::Failover::fail_fast;
  const bool panic = pool.health->panic();
  if (home_alone && !tried.empty()) return std::nullopt;
  if (home_alone || (panic && tried.empty())) {
    const ring::ServerIndex home = pool.ring->owner(position);
    if (const auto taken = take(pool, home)) return taken;
    if (panic) return Choice{home, false};
    return std::nullopt;
  }

  const auto was_tried = [&](ring::ServerIndex server) {
    return std::ranges::find(tried, server) != tried.end();
  };
  const auto passed_over = [&](ring::ServerIndex server) {
    const HealthMark& mark = mark_of(pool, server);
    return (!mark.usable() && !mark.awaits_trial()) || was_tried(server);
  };
  // Another request may begin the trial first, then the walk goes on.
  while (const auto next = pool.ring->successor(position, passed_over))
    if (const auto taken = take(pool, next->server)) return taken;
  if (const auto next = pool.ring->successor(position, was_tried))
    return Choice{next->server, false};
  return std::nullopt;
}

std::optional<ring::ServerIndex> choose_second(const Pool& pool, ring::Position position,
                                               std::span<const ring::ServerIndex> tried) {
  if (pool.config.failover == config::Failover::fail_fast) return std::nullopt;
  const auto next = pool.ring->successor(position, [&](ring::ServerIndex server) {
    return !mark_of(pool, server).usable() || std::ranges::find(tried, server) != tried.end();
  });
  if (!next) return std::nullopt;
  return next->server;
}

}  // namespace clockwise::upstream
