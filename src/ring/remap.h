// The remap account: what a change from one ring to another moves, exactly.
//
// Both rings are walked once, arc by arc, so the figures are not samples: O(points of both).
// Servers of the two rings are matched by the names the caller gives, since indexes differ between
// lists.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ring/ring.h"

namespace clockwise::ring {

struct Move {
  std::string from;
  std::string to;
  double ratio = 0;  // share of the circle, 0 to 1
};

struct RingView {
  const Ring* ring = nullptr;          // empty ring or null: nobody owns anything
  std::span<const std::string> names;  // by server index
};

// Everything that changes hands, sorted by (from, to); no entry with from == to or ratio 0.
// A side without an owner (empty ring) moves nothing.
[[nodiscard]] std::vector<Move> moved_arcs(const RingView& before, const RingView& after);

}  // namespace clockwise::ring
