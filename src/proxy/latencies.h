// How long the servers of a pool took lately until the head of their answers: a histogram that
// forgets. It tells after what time an answer is late.
//
// Pure; one worker's. Adding costs a few instructions and no allocation. Buckets grow by a quarter
// of a power of two, so a quantile is at most a fifth too long; every kKept answers all counts are
// halved, so that the newest weigh most.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

namespace clockwise::proxy {

class Latencies {
 public:
  static constexpr std::uint32_t kKept = 2048;
  static constexpr std::uint32_t kLeast = 32;  // answers, before there is an opinion

  void add(std::uint64_t ns) noexcept {
    ++counts_[bucket(ns)];
    ++fresh_;
    if (++total_ >= kKept) forget_half();
  }

  // The time within which the share `quantile` of the answers came; 0 while it is not known. Worked
  // out anew after every kRefresh answers.
  [[nodiscard]] std::chrono::nanoseconds quantile(double quantile) noexcept {
    if (total_ < kLeast) return {};
    if (fresh_ >= kRefresh || quantile != asked_) {
      fresh_ = 0;
      asked_ = quantile;
      known_ = find(quantile);
    }
    return known_;
  }

 private:
  static constexpr std::uint32_t kRefresh = 32;
  static constexpr unsigned kFirst = 16;  // below 2^16 ns, 66 us, nothing is told apart
  static constexpr unsigned kLast = 37;   // nor above 2^37 ns, 137 s
  static constexpr std::size_t kBuckets = std::size_t{kLast - kFirst} * 4 + 1;

  [[nodiscard]] static std::size_t bucket(std::uint64_t ns) noexcept {
    if (ns < std::uint64_t{1} << kFirst) return 0;
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
    if (power >= kLast) return kBuckets - 1;
    return std::size_t{power - kFirst} * 4 + (ns >> (power - 2) & 3) + 1;
  }
  // The end of a bucket.
  [[nodiscard]] static std::uint64_t end(std::size_t bucket) noexcept {
    const std::uint64_t quarter = std::uint64_t{1} << (kFirst - 2 + bucket / 4);
    return quarter * (4 + bucket % 4);
  }

  [[nodiscard]] std::chrono::nanoseconds find(double quantile) const noexcept {
    const double wanted = quantile * total_;
    double seen = 0;
    std::size_t i = 0;
    for (; i + 1 < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= wanted) break;
    }
    return std::chrono::nanoseconds(end(i));
  }

  void forget_half() noexcept {
    total_ = 0;
    for (std::uint32_t& count : counts_) total_ += count /= 2;
  }

  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint32_t total_ = 0;
  std::uint32_t fresh_ = 0;  // since known_ was worked out
  double asked_ = 0;
  std::chrono::nanoseconds known_{};
};

}  // namespace clockwise::proxy
