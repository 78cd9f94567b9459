// The access log: one line per finished request, written off the event loops.
//
// Each worker formats into a buffer of its own; one writer thread empties the buffers into the
// file. A sink that cannot keep up loses lines, never requests: the buffer is bounded, and what
// does not fit is counted (clockwise_log_messages_dropped_total). Octets from the wire are escaped,
// so that no request can forge a line.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "config/model.h"
#include "metrics/cells.h"

namespace clockwise::proxy {

struct AccessRecord {
  std::chrono::system_clock::time_point time;
  std::string_view client_ip;
  std::string_view method, target, host;  // as received
  std::uint8_t minor_version = 1;
  std::uint16_t status = 0;  // 0: closed before an answer
  std::uint64_t request_bytes = 0, response_bytes = 0;
  std::chrono::nanoseconds duration{0};
  std::string_view listener, pool, server;  // server empty: answered by the proxy
  std::uint32_t attempts = 0;
  std::string_view reason;  // why the proxy answered itself, or the answer was cut
  std::string_view request_id, referer, user_agent;
};

class AccessLog {
 public:
  // Opens the file; the error names it and the cause. `cells[worker].log_dropped` counts.
  static Result<std::shared_ptr<AccessLog>> open(
      const config::AccessLog& config,
      std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> cells);
  // Whether open() would succeed, without creating anything.
  static Result<void> check(const config::AccessLog& config);
  virtual ~AccessLog() = default;

  // On the worker's thread; no lock shared with other workers, no allocation in steady state.
  virtual void append(std::size_t worker, const AccessRecord& record) = 0;
  // Whether this request is in the sample; on the worker's thread.
  virtual bool sampled(std::size_t worker) noexcept = 0;
  virtual void reopen() = 0;  // SIGUSR1: after a rotation; any thread
};

}  // namespace clockwise::proxy
