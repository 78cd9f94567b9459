// When the next turn of a loop had better begin a little later, with more in it.
//
// A loop that is faster than its clients and servers wakes for each message, and waking costs more
// than the message: of hundreds of commands under way it handles one or two at a time. After a
// pause of a small share of what an answer takes anyway, many come together and share system calls.
// Where the loop itself is what everybody waits for, they come together without a pause.
//
// Pure; of one Loop, whose thread calls it. What it is worth: docs/memcached.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace clockwise::io {

class Gather {
 public:
  // In ns. A shorter pause costs what it saves, and a longer one saves hardly more.
  static constexpr double kShortest = 30'000;
  static constexpr double kLongest = 250'000;
  static constexpr std::size_t kMany = 32;  // under way; with fewer, a pause gathers little

  // So many answers are waited for, which may take longer by that share of their time; 0: not at
  // all. The smallest share counts until nothing is under way.
  void begun(std::size_t answers, double share) noexcept {
    share_ = under_way_ == 0 ? share : std::min(share_, share);
    under_way_ += answers;
  }
  void ended(std::size_t answers, std::uint64_t took_ns) noexcept {
    dropped(answers);
    ended_ += answers;
    const double more = std::min(static_cast<double>(took_ns), kSlow) - took_ns_;
    took_ns_ += more / (more < 0 ? 32 : 64);
  }
  void dropped(std::size_t answers) noexcept { under_way_ -= answers; }
  // What nothing may delay.
  void urgent_begun() noexcept { ++urgent_; }
  void urgent_ended() noexcept { --urgent_; }

  // To be asked once at the end of each turn: how long to pause; 0: not at all.
  [[nodiscard]] std::uint64_t pause_ns() noexcept {
    const std::size_t ended = std::exchange(ended_, 0);
    if (urgent_ > 0 || under_way_ < kMany || ended > under_way_ / kShareOfATurn) return 0;
    const double pause = took_ns_ * share_;
    return pause < kShortest ? 0 : static_cast<std::uint64_t>(std::min(pause, kLongest));
  }

 private:
  static constexpr double kSlow = 10'000'000;  // ns: what takes longer counts as this
  // A turn with a larger part of what is under way is of a loop that others wait for.
  static constexpr std::size_t kShareOfATurn = 8;

  std::size_t under_way_ = 0;
  std::size_t urgent_ = 0;
  std::size_t ended_ = 0;  // in this turn
  // Of the last ones; below their average, since the fast ones are not to be late because others
  // take long.
  double took_ns_ = 0;
  double share_ = 0;
};

}  // namespace clockwise::io
