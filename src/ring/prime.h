// What the size of a Maglev table must be: a server's steps reach every slot of a prime number of
// them only.
#pragma once

#include <cstdint>

namespace clockwise::ring {

[[nodiscard]] constexpr bool is_prime(std::uint32_t number) noexcept {
  if (number < 2) return false;
  for (std::uint64_t divisor = 2; divisor * divisor <= number; ++divisor)
    if (number % divisor == 0) return false;
  return true;
}

}  // namespace clockwise::ring
