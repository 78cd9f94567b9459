#include "proxy/decide.h"

namespace clockwise::proxy {

using metrics::BackendError;
using metrics::RetryReason;
using metrics::RetrySuppressed;

namespace {

Verdict next_server(const Attempt& attempt, RetryReason reason) noexcept {
  if (attempt.retries_left == 0) return {Next::give_up, reason, RetrySuppressed::budget};
  return {Next::next_server, reason, {}};
}

}  // namespace

Verdict after_failure(Failure failure, const Attempt& attempt) noexcept {
  switch (failure) {
    case Failure::unresolved:
    case Failure::connect:
    case Failure::connect_timeout:
      return next_server(attempt, RetryReason::connect);
    case Failure::reset:
      break;
    case Failure::no_server:
    case Failure::timeout:  // the server may be at work on it: more load would not help
    case Failure::protocol:
      return {Next::give_up, RetryReason::reset, RetrySuppressed::no_candidate};
  }
  if (!attempt.replayable) return {Next::give_up, RetryReason::reset, RetrySuppressed::body_sent};
  if (attempt.sent && !http::is_idempotent(attempt.method)) {
    return {Next::give_up, RetryReason::reset, RetrySuppressed::unsafe_method};
  }
  if (attempt.reused && !attempt.fresh_tried) {
    return {Next::fresh_connection, RetryReason::stale_connection, {}};
  }
  return next_server(attempt, RetryReason::reset);
}

Blame blame(Failure failure) noexcept {
  switch (failure) {
    case Failure::no_server:
      return {503, "destination_unavailable", "no server of the pool can be used",
              BackendError::connect};
    case Failure::unresolved:
      return {503, "dns_error", "the server's name has no address", BackendError::resolve};
    case Failure::connect:
      return {502, "connection_refused", "no connection to the server", BackendError::connect};
    case Failure::connect_timeout:
      return {504, "connection_timeout", "no connection to the server in time",
              BackendError::timeout};
    case Failure::reset:
      return {502, "connection_terminated", "the server closed the connection without an answer",
              BackendError::reset};
    case Failure::timeout:
      return {504, "http_response_timeout", "the server did not answer in time",
              BackendError::timeout};
    case Failure::protocol:
      break;
  }
  return {502, "http_protocol_error", "the server's answer is not valid HTTP",
          BackendError::protocol};
}

}  // namespace clockwise::proxy
