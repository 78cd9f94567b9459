#include <fmt/format.h>

#include "upstream/plan.h"

namespace clockwise::upstream {

Result<std::shared_ptr<const ring::Ring>> build_ring(const config::Pool& pool) {
  auto ring = ring::build(pool.ring.scheme, config::members_of(pool.servers));
  if (!ring) return fail(fmt::format("pool {}: {}", pool.name, ring.error().message));
  return ring;
}

}  // namespace clockwise::upstream
