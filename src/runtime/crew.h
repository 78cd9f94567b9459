// All workers as one: opened, handed a new snapshot, drained and stopped together; more or fewer of
// them at a reload.
//
// For the control thread; drain, stop and all_turn for the main thread. Every wait ends.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "metrics/cells.h"
#include "proxy/admission.h"
#include "proxy/worker.h"

namespace clockwise::runtime {

class Crew {
 public:
  // There are never more workers than `cells`. `left` is called on a worker's thread when a worker
  // that a reload has dismissed has no connection left; then reap() ends it.
  Crew(metrics::PerWorker<metrics::WorkerCells>& cells,
       std::shared_ptr<const proxy::Admission> admission, std::function<void()> left);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Every worker opens its sockets; only then the threads start, so that an error leaves nothing
  // running.
  [[nodiscard]] Result<void> open(const proxy::WorkerState& state, std::size_t workers);
  void start();

  // Returns when `workers` of them run with `state`; the error is that of the first which could not
  // open a listener, and then their number is what it was. A worker that is too busy to take the
  // state within five seconds takes it as soon as it can, which is logged. Those that are too many
  // finish what they have.
  [[nodiscard]] Result<void> adopt(const proxy::WorkerState& state, std::size_t workers);
  // Whether every event loop has turned since the last call.
  [[nodiscard]] bool all_turn();
  // Ends the threads of dismissed workers that have nothing left to do.
  void reap();
  // Ends an adopt under way: the process stops.
  void give_up() noexcept { giving_up_ = true; }

  // `drained` runs once, on a worker's thread, when no worker has a connection left.
  void drain(std::function<void()> drained);
  void stop();

 private:
  struct Member {
    std::size_t index;
    std::unique_ptr<proxy::Worker> worker;
    std::uint64_t turns = 0;                   // at the last look
    std::shared_ptr<std::atomic<bool>> empty;  // of a dismissed one: no connection left
  };

  [[nodiscard]] Result<std::vector<Member>> hire(const proxy::WorkerState& state,
                                                 std::size_t workers);
  [[nodiscard]] std::optional<std::size_t> free_index(const std::vector<Member>& hired) const;
  [[nodiscard]] Result<void> hand_over(const proxy::WorkerState& state, std::size_t workers);

  metrics::PerWorker<metrics::WorkerCells>& cells_;
  const std::shared_ptr<const proxy::Admission> admission_;
  const std::function<void()> left_;

  std::mutex mutex_;  // over the lists, which change on the control thread only
  std::vector<Member> workers_, dismissed_;
  bool draining_ = false;
  std::atomic<bool> giving_up_{false};
};

}  // namespace clockwise::runtime
