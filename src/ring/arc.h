// Numbers of positions, exact: 128 bits, because a whole circle may be one more than 64 hold.
#pragma once

namespace clockwise::ring {

__extension__ typedef unsigned __int128 Arc;  // 0 to 2^64

inline constexpr Arc kWholeCircle = static_cast<Arc>(1) << 64;

// The share of a circle of `whole` positions, 0 to 1. Exact to the last bit or two of a double.
[[nodiscard]] inline double share_of(Arc arc, Arc whole = kWholeCircle) noexcept {
  return static_cast<double>(arc) / static_cast<double>(whole);
}

}  // namespace clockwise::ring
