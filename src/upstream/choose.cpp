#include "upstream/choose.h"

#include <algorithm>

namespace clockwise::upstream {

namespace {

HealthMark& mark_of(const Pool& pool, ring::ServerIndex server) {
  return *pool.servers[server].health;
}

}  // namespace

std::optional<ring::ServerIndex> next_server(const ring::Ring& ring, ring::Position position,
                                             std::span<const ring::ServerIndex> tried,
                                             const Rules& rules, const ring::Excluded& unusable) {
  const bool home_alone = rules.failover == config::Failover::fail_fast;
  if (tried.empty() && (home_alone || rules.panic)) {
    const ring::ServerIndex home = ring.owner(position);
    if (rules.panic || !unusable(home)) return home;
  }
  if (home_alone) return std::nullopt;

  const auto was_tried = [&](ring::ServerIndex server) {
    return std::ranges::find(tried, server) != tried.end();
  };
  auto next = ring.successor(
      position, [&](ring::ServerIndex server) { return unusable(server) || was_tried(server); });
  if (!next) next = ring.successor(position, was_tried);
  if (!next) return std::nullopt;
  return next->server;
}

std::optional<Choice> choose(const Pool& pool, ring::Position position,
                             std::span<const ring::ServerIndex> tried) {
  const Rules rules{pool.config.failover, pool.health->panic()};
  const auto unusable = [&](ring::ServerIndex server) {
    const HealthMark& mark = mark_of(pool, server);
    return !mark.usable() && !mark.awaits_trial();
  };
  while (const auto next = next_server(*pool.ring, position, tried, rules, unusable)) {
    HealthMark& mark = mark_of(pool, *next);
    if (!mark.awaits_trial()) return Choice{*next, false};
    if (mark.begin_trial()) return Choice{*next, true};
    // Another request has begun the trial first.
  }
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
