#include "upstream/owners.h"

#include <algorithm>

namespace clockwise::upstream {

std::optional<ring::Point> next_owner(const config::Pool& pool, const ring::Ring& ring,
                                      ring::Position position,
                                      std::span<const ring::ServerIndex> before) {
  if (before.empty() || before.size() >= pool.ring.replicas)
    return ring.successor(position, before);
  const auto in_its_zone = [&](ring::ServerIndex server) {
    const std::string& zone = pool.servers[server].zone;
    if (zone.empty()) return std::ptrdiff_t{0};
    return std::ranges::count_if(
        before, [&](ring::ServerIndex one) { return pool.servers[one].zone == zone; });
  };
  bool crowded = true;  // somebody was passed over for his zone
  for (std::ptrdiff_t most = 0; crowded; ++most) {
    crowded = false;
    const auto next = ring.successor(position, [&](ring::ServerIndex server) {
      if (std::ranges::find(before, server) != before.end()) return true;
      const bool full = in_its_zone(server) > most;
      crowded = crowded || full;
      return full;
    });
    if (next) return next;
  }
  return std::nullopt;
}

Owners::Owners(const config::Pool& pool, const ring::Ring& ring, ring::Position position) {
  while (size_ < std::min<std::size_t>(pool.ring.replicas, servers_.size())) {
    const auto next = next_owner(pool, ring, position, std::span(servers_).first(size_));
    if (!next) return;
    servers_[size_++] = next->server;
  }
}

}  // namespace clockwise::upstream
