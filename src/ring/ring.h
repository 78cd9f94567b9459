// The hash ring: which server owns a key.
//
// Every placement scheme stands behind this one small interface. A Ring is immutable, so any
// number of threads may ask it at once; it is built off the data path and replaced as a whole.
// Servers are known here by their index in the list the ring was built from; names, addresses and
// health live elsewhere (upstream/).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace clockwise::ring {

using ServerIndex = std::uint32_t;
using Position = std::uint64_t;  // a place on the circle of 2^64

// One entry of the server list as the ring sees it.
struct Member {
  std::string label;  // what is hashed: the server's label, else its name
  double weight = 1;  // 0: owns nothing
};

struct Point {
  Position position;
  ServerIndex server;
};

class Ring {
 public:
  virtual ~Ring() = default;

  // The position of a key. Never fails, no allocation.
  [[nodiscard]] virtual Position hash(std::string_view key) const noexcept = 0;

  // The server that owns a position: the first point at or after it, wrapping at the top.
  // REQUIRES: !empty().
  [[nodiscard]] virtual ServerIndex owner(Position position) const noexcept = 0;

  // The first server on the walk from `position` that is not in `excluded`; nothing when every
  // server with points is excluded. Used for failover and replicas: not the steady-state path.
  [[nodiscard]] virtual std::optional<ServerIndex> successor(
      Position position, std::span<const ServerIndex> excluded) const noexcept = 0;

  // All points by position. Two points of one position: the owner comes first.
  [[nodiscard]] virtual std::span<const Point> points() const noexcept = 0;

  // Exact part of the circle that each server owns, by server index; sums to 1 (empty ring: all 0).
  [[nodiscard]] virtual std::span<const double> shares() const noexcept = 0;

  [[nodiscard]] bool empty() const noexcept { return points().empty(); }
};

// At most this many points in one ring unless the caller says otherwise.
inline constexpr std::uint32_t kMaxPoints = 4'000'000;

// The default scheme, `clockwise`: XXH64 with seed 0 on a circle of 2^64. Point i of a server is
// XXH64(LABEL + "-" + i); a server has floor(points_per_weight × weight + 0.5) of them, however
// many others there are, so that a change of one server never moves a key between two others.
// Points of equal position: the smaller label owns it (of equal labels, the earlier in the list).
// Fails when the points of all members together exceed `max_points`; the message says which
// `points` would fit.
[[nodiscard]] Result<std::shared_ptr<const Ring>> build_clockwise_ring(
    std::span<const Member> members, std::uint32_t points_per_weight,
    std::uint32_t max_points = kMaxPoints);

}  // namespace clockwise::ring
