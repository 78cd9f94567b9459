// How many further tries the requests of a pool may cost: a bucket that every request fills a
// little and every try that may repeat work empties by one. So a fault of all servers cannot
// multiply their load by the number of tries.
//
// Pure; one worker's. Deposits cost one addition, time is looked at only when a try is due.
#pragma once

#include <algorithm>
#include <cstdint>

namespace clockwise::proxy {

class Budget {
 public:
  // What may be saved up: a burst of failures after a long quiet time is bounded too.
  static constexpr double kMost = 100;

  // Begins with `reserve` tries and is filled up to it again by `per_second`, so that a quiet pool
  // can always try again.
  constexpr Budget(double reserve, double per_second) noexcept
      : reserve_(reserve), per_second_(per_second), tries_(reserve) {}

  void deposit(double share) noexcept { tries_ = std::min(tries_ + share, kMost); }

  // `now` in milliseconds of a steady clock.
  [[nodiscard]] bool allows(std::uint64_t now) noexcept {
    if (now > filled_at_) {
      const double more = static_cast<double>(now - filled_at_) / 1000 * per_second_;
      if (tries_ < reserve_) tries_ = std::min(tries_ + more, reserve_);
      filled_at_ = now;
    }
    return tries_ > 1 - kRounding;
  }
  void take() noexcept { tries_ -= 1; }

 private:
  static constexpr double kRounding = 1e-6;

  double reserve_, per_second_;
  double tries_;
  std::uint64_t filled_at_ = 0;
};

}  // namespace clockwise::proxy
