// Jump consistent hash: J. Lamping, E. Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm",
// 2014 (https://arxiv.org/abs/1406.2294).
//
// Servers are buckets 0 to n - 1 without names or weights. Only growth and shrinking at the end of
// the list moves the minimum: take one out of the middle and all that follow it are renumbered.
#pragma once

#include <cstdint>
#include <string_view>

namespace clockwise::simulate {

// The bucket of a key that is a number already. REQUIRES: buckets > 0.
[[nodiscard]] std::uint32_t jump(std::uint64_t key, std::uint32_t buckets) noexcept;

// The bucket of a text: jump() of its XXH64. REQUIRES: buckets > 0.
[[nodiscard]] std::uint32_t jump(std::string_view key, std::uint32_t buckets) noexcept;

}  // namespace clockwise::simulate
