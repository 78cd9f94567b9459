#include "simulate/jump.h"

#include "ring/hashes.h"

namespace clockwise::simulate {

std::uint32_t jump(std::uint64_t key, std::uint32_t buckets) noexcept {
  // The key seeds a generator of random numbers. As the number of buckets grows past `next`, the
  // key jumps there; how far the jump goes is drawn so that bucket n is taken with chance 1/n.
  std::int64_t bucket = 0;
  std::int64_t next = 0;
  while (next < buckets) {
    bucket = next;
    key = key * 2'862'933'555'777'941'757ULL + 1;
    const double drawn = static_cast<double>(1LL << 31) / static_cast<double>((key >> 33) + 1);
    next = static_cast<std::int64_t>(static_cast<double>(bucket + 1) * drawn);
  }
  return static_cast<std::uint32_t>(bucket);
}

std::uint32_t jump(std::string_view key, std::uint32_t buckets) noexcept {
  return jump(ring::xxh64(key), buckets);
}

}  // namespace clockwise::simulate
