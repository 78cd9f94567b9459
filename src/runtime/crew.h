// All workers as one: opened, handed a new snapshot, drained and stopped together.
//
// For the control thread; drain and stop for the main thread. Every wait ends.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "metrics/cells.h"
#include "proxy/access_log.h"
#include "proxy/worker.h"

namespace clockwise::runtime {

class Crew {
 public:
  Crew(std::size_t workers, metrics::PerWorker<metrics::WorkerCells>& cells,
       const std::shared_ptr<proxy::AccessLog>& log);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Every worker opens its sockets; only then the threads start, so that an error leaves nothing
  // running.
  [[nodiscard]] Result<void> open(const proxy::WorkerState& state);
  void start();

  // Returns when every worker runs with `state`; the error is that of the first which could not
  // open a listener. A worker that is too busy to take it within five seconds takes it as soon as
  // it can, which is logged.
  [[nodiscard]] Result<void> adopt(const proxy::WorkerState& state);
  // Ends an adopt under way: the process stops.
  void give_up() noexcept { giving_up_ = true; }

  // `drained` runs once, on a worker's thread, when no worker has a connection left.
  void drain(std::function<void()> drained);
  void stop();

 private:
  std::vector<std::unique_ptr<proxy::Worker>> workers_;
  std::atomic<bool> giving_up_{false};
};

}  // namespace clockwise::runtime
