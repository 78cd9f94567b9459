// Which servers hold a key, where several do: one rule for look-ups, `explain` and the proxy.
//
// The first one is the home. Each further one is the first server on the walk from the position of
// the key that stands in another zone than those before it, while there is such a zone; then in one
// that has two of them, and so on. A server without a zone shares one with nobody. Pure; health
// plays no part.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "config/model.h"
#include "ring/ring.h"

namespace clockwise::upstream {

// The owner that follows those `before` it, with the point through which it is reached; behind
// `ring.replicas` owners the next server on the walk. Nothing: there is no other server.
[[nodiscard]] std::optional<ring::Point> next_owner(const config::Pool& pool,
                                                    const ring::Ring& ring, ring::Position position,
                                                    std::span<const ring::ServerIndex> before);

// Those of one key: `ring.replicas` of them, or as many as the ring has. No allocation.
class Owners {
 public:
  Owners(const config::Pool& pool, const ring::Ring& ring, ring::Position position);

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] ring::ServerIndex operator[](std::uint32_t place) const noexcept {
    return servers_[place];
  }

 private:
  std::array<ring::ServerIndex, config::kMaxReplicas> servers_;
  std::uint32_t size_ = 0;
};

}  // namespace clockwise::upstream
