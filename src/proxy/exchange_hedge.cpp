// The exchange whose first attempt is slow: a second one beside it, and which of them counts.
#include "proxy/exchange.h"
#include "proxy/session.h"
#include "upstream/choose.h"

namespace clockwise::proxy {

using metrics::at;

namespace {

// Nothing is late sooner: a second request must be able to win something.
constexpr std::chrono::nanoseconds kSoonest = std::chrono::milliseconds(1);

// A request that was moved on so often has cost enough.
constexpr std::size_t kMostFailed = 1;

}  // namespace

// The rules for this request; null: it is not hedged.
const config::Hedge* Exchange::hedging() const noexcept {
  const config::Pool& pool = view_->pool->config;
  if (!http::is_read(method_) || request_body_.kind() != http::BodyKind::none || !pool.hedge)
    return nullptr;
  return &*pool.hedge;
}

// With the first attempt.
void Exchange::expect_answer() {
  const config::Hedge* rules = hedging();
  if (rules == nullptr || attempts_ != 1) return;
  PoolMemory& memory = *view_->memory;
  std::chrono::nanoseconds after = rules->after;
  if (rules->quantile > 0) {
    after = memory.latencies.quantile(rules->quantile);
    if (after.count() == 0) return;
  }
  memory.hedge_clock.set(*this, std::max(after, kSoonest));
}

void Exchange::on_late() {
  if (phase_ == Phase::item) return pool_is_late();
  const config::Hedge* rules = hedging();
  Budget& budget = view_->memory->hedges;
  const bool waits =
      phase_ == Phase::connecting || phase_ == Phase::sending || phase_ == Phase::head;
  if (!waits || refused_.server != nullptr || tried_.size() > kMostFailed) return;
  // Called off, an attempt tells nothing of its server: one that may be ill is waited for.
  if (trial_ || target_->health().failing()) return;
  // Servers that have left the ring meanwhile get nothing new.
  if (session_->listener().newest(*view_) != view_) return;
  if (rules == nullptr || rules->budget <= 0 || !budget.allows(now())) return;
  tried_.push_back(target_index_);
  const auto next = upstream::choose_second(*view_->pool, hash_, tried_);
  tried_.pop_back();
  if (!next || !view_->servers[*next]->reachable()) return;
  Hedge::Owner& owner = *this;
  hedge_ = std::make_unique<Hedge>(context_, owner, session_->listener().config().limits, method_);
  budget.take();
  ++attempts_;
  if (hedge_->start(*view_->servers[*next], *next)) return;
  --attempts_;
  hedge_.reset();
}

void Exchange::write_hedge(const upstream::ServerConnections& target) {
  rescan_head();
  write_request_head(target);
}

// An error is no reason to call off the first attempt, which may do better.
void Exchange::on_hedge_answered(unsigned status) {
  if (status >= 500) {
    hedge_->refuse(status);
    return end_hedge(metrics::Hedged::cancelled);
  }
  note_latency();  // it took at least so long
  drop_server();
  take_over_hedge();
  read_response_head();
}

void Exchange::on_hedge_failed(upstream::ServerConnections& target, Failure failure, bool reused) {
  if (is_evidence(failure, reused)) tell_failure(target, failure, false);
  end_hedge(metrics::Hedged::cancelled);
}

// The second attempt is now the only one.
void Exchange::take_over_hedge() {
  at(view_->cells->hedges, metrics::Hedged::won).add();
  tried_.push_back(target_index_);
  Hedge::State state = hedge_->take_over(*this);
  hedge_.reset();
  target_ = state.target;
  target_index_ = state.index;
  server_ = state.server;
  to_server_ = std::move(state.to_server);
  dispatched_ns_ = state.dispatched_ns;
  request_written_ = state.written;
  server_failed_writing_ = false;
  response_scanned_ = 0;
  attempt_open_ = true;
  const config::PoolTimeouts& timeouts = view_->pool->config.timeouts;
  phase_ = server_->connected() ? Phase::head : Phase::connecting;
  await(Side::server, server_->connected() ? timeouts.response : timeouts.connect);
}

void Exchange::end_hedge(metrics::Hedged result) {
  if (!hedge_) return;
  at(view_->cells->hedges, result).add();
  hedge_.reset();
}

void Exchange::note_latency() {
  const config::Hedge* rules = hedging();
  if (rules == nullptr || rules->quantile == 0) return;
  view_->memory->latencies.add(context_.loop.now_ns() - dispatched_ns_);
}

}  // namespace clockwise::proxy
