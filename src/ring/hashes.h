// The hash functions of the schemes, each as its peer computes it.
//
// Pure functions of the octets; no allocation, no state, any thread.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace clockwise::ring {

// XXH64 (the algorithm's specification: github.com/Cyan4973/xxHash).
[[nodiscard]] inline std::uint64_t xxh64(std::string_view text, std::uint64_t seed = 0) noexcept {
  return XXH64(text.data(), text.size(), seed);
}

}  // namespace clockwise::ring
