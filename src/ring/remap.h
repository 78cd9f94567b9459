// The remap account: what a change from one ring to another moves.
//
// Where both rings hash a key to the same position the account is exact: circles are walked arc by
// arc, O(points of both), tables slot by slot over their common period. Otherwise (another hash, a
// circle against a table, a ring that is neither) it is estimated from a fixed set of keys, the
// same figures at every run.
//
// Pure, any thread. Servers of the two rings are matched by the names the caller gives, since
// indexes differ between lists.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/large_vector.h"
#include "ring/ring.h"

namespace clockwise::ring {

struct Move {
  ServerIndex from;  // in the list before
  ServerIndex to;    // in the list after
  double ratio;      // share of all positions, 0 to 1

  friend bool operator==(const Move&, const Move&) = default;
};

using Moves = LargeVector<Move>;  // there may be a million

struct Account {
  bool exact = true;  // false: estimated from kSampledKeys keys
  // Everything that changes hands, sorted by the names of (from, to); no entry with equal names or
  // ratio 0.
  Moves moves;
};

struct RingView {
  const Ring* ring = nullptr;          // empty ring or null: nobody owns anything
  std::span<const std::string> names;  // by server index, each one once
};

// What a request asks both rings for.
enum class Keys : std::uint8_t {
  same,
  other,  // the key is made in another way, so its place on one ring tells nothing of the other
};

// A share of 1 % is then off by 0.01 percentage points (one standard deviation).
inline constexpr std::uint32_t kSampledKeys = 1 << 20;

// Tables whose common period is longer than this are sampled.
inline constexpr std::uint32_t kLongestPeriod = 1 << 24;

// A side without an owner (empty ring) moves nothing.
[[nodiscard]] Account compare(const RingView& before, const RingView& after,
                              Keys keys = Keys::same);

}  // namespace clockwise::ring
