// One event-loop thread: its listeners, client sessions and upstream connections.
//
// Everything in it is touched by its own thread only; the public functions may be called from the
// control thread. Nothing is shared between workers but immutable snapshots and counters of which
// each worker has its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "config/model.h"
#include "metrics/cells.h"
#include "upstream/directory.h"
#include "upstream/routing.h"

namespace clockwise::proxy {

class AccessLog;
struct Admission;

// A listener as workers need it; the socket itself is opened per worker (SO_REUSEPORT). A unix
// socket cannot be: each worker accepts from a duplicate of the one that listens.
struct ListenerSpec {
  config::Listener config;  // with the port that was taken, when the file says 0; host is numeric
  int listening_descriptor = -1;                    // of a unix socket; not owned
  std::uint32_t max_connections_per_worker = 1024;  // `auto` resolved
  std::shared_ptr<upstream::ListenerCounters> counters;
};

// What a worker runs with; replaced as a whole at reload.
struct WorkerState {
  std::shared_ptr<const upstream::Routing> routing;
  std::vector<std::shared_ptr<const ListenerSpec>> listeners;
  std::shared_ptr<AccessLog> log;  // null: off
};

class Worker {
 public:
  // `index` picks the counters, which no other running worker may have.
  Worker(std::size_t index, metrics::WorkerCells& cells,
         std::shared_ptr<const Admission> admission);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Opens the listening sockets that `state` names and adopts it; on the calling thread, before
  // start(). A port in use or a missing permission is an error that names the listener.
  [[nodiscard]] Result<void> open(const WorkerState& state);
  void start();  // the thread

  // Replaces the snapshot between two requests; `adopted` runs on the worker's thread after that.
  // Requests in flight finish where they started. Timeouts and limits apply to the next request. A
  // listener whose name the worker does not know is opened, one that is no longer named stops
  // accepting and its connections end with their next answer; `adopted` gets the first error.
  void adopt(WorkerState state, std::function<void(Result<void>)> adopted);

  // Stops accepting and answers with Connection: close from now on; connections that stay idle are
  // closed after a second. `drained` runs on the worker's thread once the last one is gone.
  void drain(std::function<void()> drained);
  void stop();  // at once: connections are dropped, the thread is joined

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clockwise::proxy
