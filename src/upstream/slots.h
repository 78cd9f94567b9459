// One worker's part of the connections that all workers together may have to a server
// (`connections.max`).
//
// A connection takes a slot before it is opened and gives it back once it is closed; using one
// again touches nothing that is shared. Where workers compete, each may be made to give up what it
// has beyond its share: a worker with an endless queue of its own would otherwise never let another
// have one. One thread, but for the words of Backend::Shared.
#pragma once

#include <cstdint>

#include "io/deadlines.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

class Slots {
 public:
  // A worker whose own requests wait too keeps others waiting at most so long.
  static constexpr io::Milliseconds kTurn = 250;

  explicit Slots(Backend::Shared& shared) noexcept : shared_(shared) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  void limit(std::uint32_t max) noexcept { max_ = max; }  // 0: none
  [[nodiscard]] bool limited() const noexcept { return max_ != 0; }
  // More are open than there may be, since the limit was lowered.
  [[nodiscard]] bool exceeded() const noexcept {
    return max_ != 0 && shared_.open.load(std::memory_order_relaxed) > max_;
  }

  // For a connection that is about to be opened; false at the limit, and where the free ones are
  // for other workers.
  [[nodiscard]] bool take() noexcept;
  void give_back() noexcept;

  // A request of this worker begins to wait, or waits no longer.
  void wait() noexcept;
  void waited() noexcept;

  // Every 50 ms: how many connections should be closed in favour of other workers, of which `idle`
  // are at hand.
  [[nodiscard]] std::uint32_t to_give_up(io::Milliseconds now, std::uint32_t idle) noexcept;

 private:
  [[nodiscard]] std::uint32_t others_waiting() const noexcept {
    return shared_.waiting.load(std::memory_order_relaxed) - waiting_;
  }
  [[nodiscard]] std::uint32_t contenders() const noexcept {
    const std::uint32_t n = shared_.contenders.load(std::memory_order_relaxed);
    return n == 0 ? 1 : n;
  }
  void contend(std::uint32_t before) noexcept;
  void retire_from_contest() noexcept;

  Backend::Shared& shared_;
  std::uint32_t max_ = 0;
  std::uint32_t own_ = 0, waiting_ = 0;
  std::uint32_t rest_ = 0;  // ticks in which others may take what was given up
  io::Milliseconds others_wait_since_ = io::Deadlines::kNever;
};

}  // namespace clockwise::upstream
