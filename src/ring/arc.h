// Lengths on the circle of 2^64, exact: 128 bits, because the whole circle is one more than 64
// hold.
#pragma once

#include <cmath>

namespace clockwise::ring {

__extension__ typedef unsigned __int128 Arc;  // a number of positions, 0 to 2^64

inline constexpr Arc kWholeCircle = static_cast<Arc>(1) << 64;

// The share of the circle, 0 to 1, rounded once.
[[nodiscard]] inline double share_of(Arc arc) noexcept {
  return std::ldexp(static_cast<double>(arc), -64);
}

}  // namespace clockwise::ring
