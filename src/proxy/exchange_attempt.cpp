// The exchange and the servers it tries, one after another: whom to ask, what a failure means, and
// whose answer is passed on in the end.
#include <algorithm>

#include "proxy/exchange.h"
#include "proxy/session.h"
#include "upstream/choose.h"

namespace clockwise::proxy {

using metrics::at;
using metrics::Code;

namespace {

// A server that was tried and is not in the newest snapshot.
constexpr ring::ServerIndex kGone = ~ring::ServerIndex{0};

}  // namespace

// The next distinct server on the walk, as far as health allows. It may have a connection that is
// ready at once, so the head must be back in the scratch before.
void Exchange::route() {
  if (view_->pool->ring->empty()) return give_up(last_failure_);
  const auto next = upstream::choose(*view_->pool, hash_, tried_);
  if (!next) return give_up(last_failure_);
  target_index_ = next->server;
  trial_ = next->trial;
  rescan_head();
  lease(false);
}

// Whether anybody is left after those that failed this request.
bool Exchange::has_candidate() const {
  return view_->pool->config.failover == config::Failover::next &&
         view_->pool->ring->successor(hash_, tried_).has_value();
}

void Exchange::lease(bool fresh) {
  target_ = view_->servers[target_index_];
  request_written_ = server_failed_writing_ = false;
  if (!target_->reachable()) return fail(Failure::unresolved);
  upstream::ServerConnection* server = target_->lease(*this, fresh);
  if (server == nullptr) return wait_for_connection();
  begin_attempt(*server);
}

void Exchange::wait_for_connection() {
  // Whoever holds a connection must not wait for another: two could wait for each other.
  if (refused_.server != nullptr) return pass_on_refused();
  if (!target_->join(waiter_)) {
    at(target_->cells().queue_rejected, metrics::QueueRejected::full).add();
    return give_up(Failure::queue_full);
  }
  phase_ = Phase::queued;
  watch_client();
  await(Side::server, view_->pool->config.connections.queue_timeout);
}

void Exchange::waited_too_long() {
  target_->leave(waiter_);
  if (answer_due_ <= now()) return give_up(Failure::total);
  at(target_->cells().queue_rejected, metrics::QueueRejected::timeout).add();
  give_up(Failure::queue_timeout);
}

void Exchange::on_server_leased(upstream::ServerConnection& server) {
  context_.loop.refresh();
  watch_due_ = io::Deadlines::kNever;
  rescan_head();
  begin_attempt(server);
}

void Exchange::on_server_left() {
  context_.loop.refresh();
  watch_due_ = io::Deadlines::kNever;
  leave_trial();
  follow_changes();
  route();
}

// A further try goes by the newest snapshot: servers that have left the ring get nothing new. What
// was tried is remembered as far as it is still there. REQUIRES: no attempt is under way.
void Exchange::follow_changes() {
  PoolView* newest = session_->listener().newest(*view_);
  if (newest == view_ || newest == nullptr) return;
  const auto now_at = [&](ring::ServerIndex before) {
    const auto found = std::ranges::find(newest->servers, view_->servers[before]);
    return found == newest->servers.end()
               ? kGone
               : static_cast<ring::ServerIndex>(found - newest->servers.begin());
  };
  for (ring::ServerIndex& index : tried_)
    if (index != kGone) index = now_at(index);
  if (refused_.server != nullptr) {
    refused_.index = now_at(refused_.index);
    if (refused_.index == kGone) release_refused();  // nobody would keep its connections
  }
  if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
  target_ = nullptr;
  --view_->users;
  view_ = newest;
  ++view_->users;
  const upstream::Pool& pool = *view_->pool;
  if (pool.ring->empty()) return;
  rescan_head();
  hash_ = position(*pool.ring, pool.key);
  home_ = pool.ring->owner(hash_);
}

// REQUIRES: Context::request is this request's head.
void Exchange::begin_attempt(upstream::ServerConnection& server) {
  server_ = &server;
  // What may not or cannot be sent twice, because it will not be kept, is not sent on a connection
  // that the server has ended meanwhile.
  const bool only_once = !http::is_idempotent(method_) || !request_body_.done();
  if (server.connected() && only_once && server.stream().has_news()) {
    release_server(false);
    return lease(true);
  }
  ++attempts_;
  dispatched_ns_ = context_.loop.now_ns();
  target_->cells().in_flight.add();
  attempt_open_ = true;
  if (view_->pool->config.hedge) expect_answer();
  if (server.connected()) return send_request();
  phase_ = Phase::connecting;
  await(Side::server, view_->pool->config.timeouts.connect);
}

// This attempt is lost, before any octet of an answer went to the client.
void Exchange::fail(Failure failure) {
  last_failure_ = failure;
  if (hedge_ && failure != Failure::total) return lean_on_hedge(failure);
  const Verdict verdict = verdict_on(failure);
  if (verdict.next != Next::fresh_connection) {
    attempt_ended(failure, server_ != nullptr && server_->reused());
  }
  drop_server();
  to_server_.clear();
  response_scanned_ = 0;
  switch (verdict.next) {
    case Next::give_up:
      return give_up(failure);
    case Next::fresh_connection:
      at(view_->cells->retries, verdict.reason).add();
      fresh_tried_ = true;
      return lease(true);
    case Next::next_server:
      return try_next(verdict);
  }
}

// The second attempt is under way already and may do better.
void Exchange::lean_on_hedge(Failure failure) {
  const bool reused = server_ != nullptr && server_->reused();
  if (failure != Failure::reset || !reused) attempt_ended(failure, reused);
  drop_server();
  take_over_hedge();
}

// What is to follow; counts what forbids a retry. From here on the server is among the tried ones.
Verdict Exchange::verdict_on(Failure failure) {
  const config::Retry& rules = view_->pool->config.retry;
  tried_.push_back(target_index_);
  const Attempt attempt{
      .method = method_,
      .sent = request_written_,
      .reused = server_ != nullptr && server_->reused(),
      .replayable = replayable_,
      .fresh_tried = fresh_tried_ || !target_->on_ring(),
      .candidate = has_candidate(),
      .in_budget = rules.budget > 0 && view_->memory->retries.allows(now()),
      .retries_left = retries_left_,
  };
  const Verdict verdict = after_failure(failure, attempt, rules.on);
  if (verdict.suppressed) at(view_->cells->retries_suppressed, *verdict.suppressed).add();
  if (verdict.next == Next::fresh_connection) tried_.pop_back();
  return verdict;
}

void Exchange::try_next(const Verdict& verdict) {
  at(view_->cells->retries, verdict.reason).add();
  if (verdict.from_budget) view_->memory->retries.take();
  --retries_left_;
  fresh_tried_ = false;
  follow_changes();
  route();
}

void Exchange::give_up(Failure failure) {
  if (refused_.server != nullptr) return pass_on_refused();
  const Blame why = blame(failure);
  if (failure == Failure::no_server || failure == Failure::unresolved ||
      failure == Failure::connect || failure == Failure::connect_timeout) {
    at(session_->listener().cells().request_errors, metrics::RequestError::no_backend).add();
  }
  unanswered_ = true;
  reply(why.status, why.proxy_status, why.text);
}

// The one place where it is known how an attempt at `target_` ended, called once for each: nothing,
// the server answered with `status_`; or what went wrong, also when that was after the answer had
// begun. Not called when the client or a stop of the proxy ended it, nor for a stale connection
// that is replaced by a fresh one. `reused`: on a connection that was kept, whose failure says
// nothing about the server.
void Exchange::attempt_ended(std::optional<Failure> failure, bool reused) {
  if (!failure) {
    end_trial(status_ < 500);
    return target_->health().succeeded();
  }
  if (const auto counted = blame(*failure).counted) at(target_->cells().errors, *counted).add();
  // An answer that had begun came from a server that was there.
  if (!is_evidence(*failure, reused && !answer_started_)) return leave_trial();
  tell_failure(*target_, *failure, std::exchange(trial_, false));
}

// REQUIRES: it is evidence.
void Exchange::tell_failure(upstream::ServerConnections& target, Failure failure, bool trial) {
  target.cells().failures.add();
  view_->pool->health->failed(target.health(), *blame(failure).counted, trial);
}

// This attempt tried a server on trial, which is decided now.
void Exchange::end_trial(bool good) {
  if (std::exchange(trial_, false)) view_->pool->health->tried(target_->health(), good);
}

// It told nothing: another request tries the server.
void Exchange::leave_trial() {
  if (std::exchange(trial_, false)) view_->pool->health->not_tried(target_->health());
}

// Once an attempt.
void Exchange::count_attempt(Code code) {
  if (std::exchange(attempt_open_, false))
    target_->cells().attempt_ended(code, context_.loop.now_ns() - dispatched_ns_);
}

void Exchange::release_server(bool reusable) {
  if (server_ == nullptr) return;
  upstream::ServerConnection& server = *server_;
  server_ = nullptr;
  due_ = io::Deadlines::kNever;
  splice_.reset();
  target_->give_back(server, reusable, no_body_answer_);
}

// The attempt is over without a whole answer.
void Exchange::drop_server() {
  if (server_ == nullptr) return;
  count_attempt(Code::other);
  release_server(false);
}

// An answer that says the server could not, where retry.on wants another one to be asked: it is
// kept aside, and true is returned. REQUIRES: Context::response is its head.
bool Exchange::refuse_answer() {
  const http::ResponseHead& head = context_.response;
  if (passing_refused_ || !is_cause(view_->pool->config.retry.on, head.status)) return false;
  // It came before the request was out, whose rest would still be written.
  if (!to_server_.empty()) return false;
  const Verdict verdict = hedge_ ? Verdict{} : verdict_on(Failure::status);
  if (!hedge_ && verdict.next == Next::give_up) return false;
  release_refused();
  const bool no_body = method_ == http::Method::head || head.body.kind == http::BodyKind::none;
  const std::uint64_t body = no_body ? 0 : head.body.length;
  refused_ = {.target = target_,
              .server = server_,
              .index = target_index_,
              .whole = head.keep_alive && head.reusable && !server_failed_writing_ &&
                       (no_body || head.body.kind == http::BodyKind::length) &&
                       server_->stream().in().size() == head.size + body};
  status_ = head.status;
  attempt_ended({}, server_->reused());
  count_attempt(metrics::code_of(status_));
  server_ = nullptr;
  due_ = io::Deadlines::kNever;
  if (hedge_) {
    take_over_hedge();
  } else {
    try_next(verdict);
  }
  return true;
}

// Nobody gave a better answer: the client gets what the server said.
void Exchange::pass_on_refused() {
  leave_trial();
  target_ = refused_.target;
  server_ = refused_.server;
  target_index_ = refused_.index;
  refused_ = {};
  passing_refused_ = true;
  read_response_head();
}

void Exchange::release_refused() {
  if (refused_.server == nullptr) return;
  const Refused refused = std::exchange(refused_, {});
  if (refused.whole) refused.server->stream().in().clear();
  refused.target->give_back(*refused.server, refused.whole, true);
}

}  // namespace clockwise::proxy
