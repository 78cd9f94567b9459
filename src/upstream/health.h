// Whether a server can be used, as checks and real traffic tell it. Health stands beside the ring
// and never changes it.
//
// Pure values: times, counts and chance come in as arguments. upstream/health_board.h keeps them
// for the servers of a pool and shows the workers what came of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/model.h"

namespace clockwise::upstream {

enum class Standing : std::uint8_t {
  usable,
  on_trial,  // its ejection is over: one request tries it and decides
  unusable,
};

class ServerHealth {
 public:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] Standing standing() const noexcept;

  // Active checks: `rise` or `fall` results in a row turn the opinion, the very first decides by
  // itself. A server without a result is usable.
  void checked(bool passed, const config::Health& rules) noexcept;
  void forget_checks() noexcept;
  [[nodiscard]] bool has_result() const noexcept { return has_result_; }
  [[nodiscard]] bool passing() const noexcept { return passing_; }

  // Real traffic: out for `eject` times the number of ejections in a row, at most `max_eject`;
  // those that would make it no longer are not counted. Then on trial: a success brings it back, a
  // failure ejects it for longer. `chance`, 0 to 1, makes an ejection up to a tenth longer, so that
  // many proxies do not come back at once.
  void eject(Time now, const config::Outlier& rules, double chance) noexcept;
  // Time goes by: an ejection ends, and of one that is behind it the server has one less in a row
  // each time it was in use as long as the last one lasted. True when something changed.
  bool pass_time(Time now) noexcept;
  // REQUIRES: on_trial() was true when the trial began; ignored if it no longer is.
  void tried(bool answered, Time now, const config::Outlier& rules, double chance) noexcept;
  void forget_ejections() noexcept;
  [[nodiscard]] bool ejected() const noexcept { return ejection_ != Ejection::none; }
  [[nodiscard]] bool on_trial() const noexcept { return ejection_ == Ejection::trial; }
  [[nodiscard]] std::uint32_t ejections_in_a_row() const noexcept { return in_a_row_; }
  [[nodiscard]] Time ejected_until() const noexcept { return until_; }

  // A memcached server that failed too often in a row, until a probe is answered.
  void set_away(bool away) noexcept { away_ = away; }
  [[nodiscard]] bool away() const noexcept { return away_; }

 private:
  enum class Ejection : std::uint8_t { none, out, trial };

  bool away_ = false;
  bool has_result_ = false, passing_ = true;
  std::uint32_t against_ = 0;  // results in a row that contradict `passing_`

  Ejection ejection_ = Ejection::none;
  std::uint32_t in_a_row_ = 0;
  std::chrono::steady_clock::duration length_{};  // of the last ejection
  Time until_{};  // out: its end; none: when one ejection less is in the account
};

// How many servers of a pool of `servers` may be ejected at once.
[[nodiscard]] std::size_t most_ejected(std::size_t servers, double max_ejected) noexcept;

// Whether so few servers can be used that health is left out of account: it is more likely to be
// wrong than most servers to be down, and nobody is refused without a try.
[[nodiscard]] bool panics(std::size_t usable, std::size_t servers, double panic) noexcept;

// Outcomes of the requests to a server in an interval.
struct Tally {
  std::uint64_t good = 0, bad = 0;
  [[nodiscard]] std::uint64_t total() const noexcept { return good + bad; }
};

// The servers whose share of successes lies more than `success_gap` below that of all others
// together, worst first, by index. A server, and the rest, is judged with at least `min_requests`.
[[nodiscard]] std::vector<std::size_t> stragglers(std::span<const Tally> servers,
                                                  const config::Outlier& rules);

}  // namespace clockwise::upstream
