// One event-loop thread: its listeners, client sessions and upstream connections.
//
// Everything in it is touched by its own thread only; the public functions may be called from the
// control thread. Nothing is shared between workers but immutable snapshots.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/model.h"
#include "metrics/cells.h"
#include "upstream/directory.h"
#include "upstream/routing.h"

namespace clockwise::proxy {

class AccessLog;

// A listener as workers need it; the socket itself is opened per worker (SO_REUSEPORT).
struct ListenerSpec {
  config::Listener config;  // with the port that was taken, when the file says 0
  std::uint32_t max_connections_per_worker = 1024;  // `auto` resolved
  std::shared_ptr<upstream::ListenerCounters> counters;
};

// What a worker runs with; replaced as a whole at reload.
struct WorkerState {
  std::shared_ptr<const upstream::Routing> routing;
  std::vector<std::shared_ptr<const ListenerSpec>> listeners;
};

class Worker {
 public:
  // `index` picks the counters. `log` may be null (access_log: off).
  Worker(std::size_t index, metrics::WorkerCells& cells, std::shared_ptr<AccessLog> log);
  ~Worker();

  // Opens the listening sockets that `state` names and adopts it; on the calling thread, before
  // start(). A port in use or a missing permission is an error that names the listener.
  [[nodiscard]] Result<void> open(const WorkerState& state);
  void start();  // the thread

  // Replaces the snapshot between two requests; `adopted` runs on the worker's thread after that.
  // Requests in flight finish where they started. Timeouts and limits apply to the next request.
  void adopt(WorkerState state, std::function<void()> adopted);

  // Stops accepting, answers with Connection: close from now on, closes idle connections; `drained`
  // runs on the worker's thread once the last connection is gone.
  void drain(std::function<void()> drained);
  void stop();  // at once: connections are dropped, the thread is joined
};

}  // namespace clockwise::proxy
