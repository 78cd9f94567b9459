#include "proxy/decide.h"

#include <boost/system/errc.hpp>

namespace clockwise::proxy {

using metrics::BackendError;
using metrics::RetryReason;
using metrics::RetrySuppressed;

namespace {

Verdict none() noexcept { return {}; }
Verdict none_because(RetrySuppressed why) noexcept { return {.suppressed = why}; }

// A reset of a kept connection that may have been stale is forgiven, also where `reset` is no
// cause.
bool may_be_stale(Failure failure, const Attempt& attempt) noexcept {
  return failure == Failure::reset && attempt.reused && !attempt.fresh_tried;
}

std::optional<RetryReason> cause(Failure failure, const config::RetryOn& on) noexcept {
  switch (failure) {
    case Failure::unresolved:
    case Failure::connect:
    case Failure::connect_timeout:
      if (on.connect) return RetryReason::connect;
      break;
    case Failure::reset:
      if (on.reset) return RetryReason::reset;
      break;
    case Failure::timeout:
      if (on.timeout) return RetryReason::timeout;
      break;
    case Failure::status:
      return RetryReason::status;
    case Failure::no_server:
    case Failure::local:  // another server would need the same
    case Failure::protocol:
    case Failure::total:
    case Failure::queue_full:
    case Failure::queue_timeout:
      break;
  }
  return {};
}

}  // namespace

Failure connect_failure(const boost::system::error_code& error) noexcept {
  namespace errc = boost::system::errc;
  if (error == errc::timed_out) return Failure::connect_timeout;
  for (const auto lack :
       {errc::too_many_files_open, errc::too_many_files_open_in_system, errc::no_buffer_space,
        errc::not_enough_memory, errc::address_not_available})
    if (error == lack) return Failure::local;
  return Failure::connect;
}

Verdict after_failure(Failure failure, const Attempt& attempt, const config::RetryOn& on) noexcept {
  const bool stale = may_be_stale(failure, attempt);
  const auto reason = cause(failure, on);
  if (!stale && !reason) return none();
  if (!attempt.replayable) return none_because(RetrySuppressed::body_sent);
  if (attempt.sent && !http::is_idempotent(attempt.method))
    return none_because(RetrySuppressed::unsafe_method);
  if (stale) return {.next = Next::fresh_connection, .reason = RetryReason::stale_connection};
  if (attempt.retries_left == 0 || !attempt.candidate)
    return none_because(RetrySuppressed::no_candidate);
  if (attempt.sent && !attempt.in_budget) return none_because(RetrySuppressed::budget);
  return {.next = Next::next_server, .reason = *reason, .from_budget = attempt.sent};
}

Blame blame(Failure failure) noexcept {
  switch (failure) {
    case Failure::no_server:
      return {503, "destination_unavailable", "no server can be used for this request",
              BackendError::connect};
    case Failure::unresolved:
      return {503, "dns_error", "the server's name has no address", BackendError::resolve};
    case Failure::local:
      return {503, "proxy_internal_error", "the proxy can open no more connections", {}};
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
    case Failure::total:
      return {504, "http_response_timeout", "no answer within the time for all tries",
              BackendError::timeout};
    case Failure::queue_full:
      return {503, "connection_limit_reached", "too many requests wait for the server", {}};
    case Failure::queue_timeout:
      return {503, "connection_limit_reached", "no connection to the server was free in time", {}};
    case Failure::status:  // such an answer is passed on; the client is told nothing by us
    case Failure::protocol:
      break;
  }
  return {502, "http_protocol_error", "the server's answer is not valid HTTP",
          BackendError::protocol};
}

}  // namespace clockwise::proxy
