// The decisions of one exchange, as functions of facts: no socket, no clock.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/model.h"
#include "http/head.h"
#include "metrics/cells.h"

namespace clockwise::proxy {

// How an attempt at a server failed before any octet of an answer was passed on.
enum class Failure : std::uint8_t {
  no_server,   // nobody on the ring, or nobody left to try
  unresolved,  // the server's name has no address
  local,       // the proxy has no descriptor, port or memory left for a connection
  connect,     // refused, unreachable
  connect_timeout,
  reset,          // closed or reset without an answer
  timeout,        // no answer in time
  protocol,       // not an HTTP answer
  status,         // an answer of its own that is among retry.on
  total,          // the time for all tries together is over
  queue_full,     // all connections in use, and no room to wait for one
  queue_timeout,  // waited too long for one
};

// Why there is no connection. What this machine lacks is no fault of the server.
[[nodiscard]] Failure connect_failure(const boost::system::error_code& error) noexcept;

// A status that says the server could not, and whose retry is asked for.
[[nodiscard]] constexpr bool is_cause(const config::RetryOn& on, unsigned status) noexcept {
  return (status == 502 && on.s502) || (status == 503 && on.s503) || (status == 504 && on.s504);
}

// Whether a failure tells something about the server. The end of a connection that was kept does
// not: the server may have closed it as idle.
[[nodiscard]] constexpr bool is_evidence(Failure failure, bool reused) noexcept {
  switch (failure) {
    case Failure::connect:
    case Failure::connect_timeout:
    case Failure::timeout:
    case Failure::protocol:
    case Failure::total:
      return true;
    case Failure::reset:
      return !reused;
    case Failure::no_server:
    case Failure::unresolved:
    case Failure::local:
    case Failure::status:
    case Failure::queue_full:
    case Failure::queue_timeout:
      break;
  }
  return false;
}

struct Attempt {
  http::Method method = http::Method::get;
  bool sent = false;         // at least one octet of the request was written
  bool reused = false;       // on a connection that had carried an exchange before
  bool replayable = true;    // the whole request still stands in the buffer
  bool fresh_tried = false;  // a stale connection to this server was already forgiven once
  bool candidate = true;     // there is another server to try
  bool in_budget = true;     // one more try that may repeat work is allowed
  std::uint32_t retries_left = 0;
};

enum class Next : std::uint8_t { fresh_connection, next_server, give_up };

struct Verdict {
  Next next = Next::give_up;
  metrics::RetryReason reason = metrics::RetryReason::connect;
  bool from_budget = false;  // the further try may repeat what a server has done
  // Why there is no retry where one was asked for; only with give_up.
  std::optional<metrics::RetrySuppressed> suppressed = {};
};

// Retry rules (docs/failure-modes.md): for the causes of `on`; never after an octet of the answer
// was passed on; an unsafe method only when nothing was sent; a connection that went stale while
// idle costs no try. What was never sent is free of the budget.
[[nodiscard]] Verdict after_failure(Failure failure, const Attempt& attempt,
                                    const config::RetryOn& on) noexcept;

// What the client is told when tries end (RFC 9209 section 2.3 for the error token).
struct Blame {
  std::uint16_t status;
  std::string_view proxy_status;  // "connection_refused"
  std::string_view text;          // one line for the body
  // How the server's error counts; nothing where it is none of the server.
  std::optional<metrics::BackendError> counted;
};
[[nodiscard]] Blame blame(Failure failure) noexcept;

// Whether a 1xx may be the next on the way to an answer, of which it is the `count`th. Nobody asked
// for another protocol, and a server that only ever announces would hold its client for ever.
[[nodiscard]] constexpr bool may_be_interim(unsigned status, std::uint32_t count) noexcept {
  constexpr std::uint32_t kMost = 16;
  return status != 101 && count <= kMost;
}

// How the content goes to the client, given how it comes and what the client speaks.
[[nodiscard]] constexpr http::BodyKind client_framing(http::BodyKind from_server,
                                                      std::uint8_t client_minor) noexcept {
  if (from_server == http::BodyKind::chunked || from_server == http::BodyKind::until_close) {
    return client_minor == 0 ? http::BodyKind::until_close : http::BodyKind::chunked;
  }
  return from_server;
}

}  // namespace clockwise::proxy
