#include <fmt/format.h>

#include "upstream/plan.h"

namespace clockwise::upstream {

Result<std::shared_ptr<const ring::Ring>> build_ring(const config::Pool& pool) {
  if (pool.ring.scheme != "clockwise")
    return fail(fmt::format("pool {}: ring.scheme \"{}\" is not known, use \"clockwise\"",
                            pool.name, pool.ring.scheme));
  std::vector<ring::Member> members;
  members.reserve(pool.servers.size());
  for (const config::Server& server : pool.servers)
    members.push_back({server.ring_label(), server.on_ring() ? server.weight : 0});
  auto ring = ring::build_clockwise_ring(members, pool.ring.points, config::kMaxPoints);
  if (!ring) return fail(fmt::format("pool {}: {}", pool.name, ring.error().message));
  return ring;
}

}  // namespace clockwise::upstream
