#include "upstream/health_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "upstream/routing.h"

namespace clockwise::upstream {

namespace {

using metrics::BackendError;

// Nobody may be there to take the changes.
constexpr std::size_t kMostChanges = 1'000;

std::chrono::milliseconds since_epoch() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

// Since the start; a server's own 5xx counts against it here.
Tally tally_of(const Backend& backend) {
  Tally tally;
  for (const metrics::BackendCells& cells : backend.cells.all()) {
    for (const auto code : {metrics::Code::c2xx, metrics::Code::c3xx, metrics::Code::c4xx})
      tally.good += metrics::at(cells.requests, code).get();
    tally.bad += metrics::at(cells.requests, metrics::Code::c5xx).get();
    tally.bad += cells.failures.get();
  }
  return tally;
}

std::string in_seconds(std::chrono::steady_clock::duration time) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

std::string_view describe(BackendError failure) noexcept {
  switch (failure) {
    case BackendError::resolve:
      return "no address";
    case BackendError::connect:
      return "no connection";
    case BackendError::tls:
      return "no TLS";
    case BackendError::timeout:
      return "no answer in time";
    case BackendError::reset:
      return "the connection ended before the answer did";
    case BackendError::protocol:
      break;
  }
  return "an answer that is not HTTP";
}

HealthMark::HealthMark(std::shared_ptr<Backend> backend)
    : backend_(std::move(backend)), seen_(tally_of(*backend_)) {}

HealthBoard::HealthBoard(std::string pool, Clock clock)
    : pool_(std::move(pool)), clock_(std::move(clock)), random_(std::random_device{}()) {}

// --- workers ------------------------------------------------------------------------------------

void HealthBoard::failed(HealthMark& mark, BackendError cause, bool trial) {
  mark.last_failure_.store(
      (static_cast<std::uint64_t>(since_epoch().count()) << 8) | static_cast<std::uint64_t>(cause),
      std::memory_order_relaxed);
  if (trial) return tried(mark, false);
  const std::uint32_t threshold = threshold_.load(std::memory_order_relaxed);
  const std::uint32_t lost_after = lost_after_.load(std::memory_order_relaxed);
  if (threshold == 0 && lost_after == 0) return;
  const std::uint32_t failures = mark.failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool too_often = threshold != 0 && failures >= threshold && mark.usable();
  const bool is_lost = lost_after != 0 && failures >= lost_after && !mark.away();
  if (!too_often && !is_lost) return;
  const std::string why = failures == 1 ? fmt::format("a request failed: {}", describe(cause))
                                        : fmt::format("{} requests in a row failed, the last: {}",
                                                      failures, describe(cause));
  if (is_lost) lost(mark, why);
  const std::lock_guard lock(mutex_);
  if (too_often) eject(mark, why);
}

void HealthBoard::lost(HealthMark& mark, std::string_view why) {
  if (mark.away()) return;
  const std::lock_guard lock(mutex_);
  if (!mark.watched_) return;
  mark.away_.store(true, std::memory_order_release);
  update(mark, why, [](ServerHealth& health) { health.set_away(true); });
}

void HealthBoard::found(HealthMark& mark) {
  const std::lock_guard lock(mutex_);
  mark.failures_.store(0, std::memory_order_relaxed);
  mark.away_.store(false, std::memory_order_release);
  update(mark, "it answers again", [](ServerHealth& health) { health.set_away(false); });
}

void HealthBoard::tried(HealthMark& mark, bool good) {
  const std::lock_guard lock(mutex_);
  if (!mark.watched_ || !outlier_ || !mark.health_.on_trial()) return;
  const Time now = clock_();
  update(mark, "the request that tried it was answered",
         [&](ServerHealth& health) { health.tried(good, now, *outlier_, chance()); });
  if (good) return;
  mark.backend_->health.ejections.fetch_add(1, std::memory_order_relaxed);
  tell(false, fmt::format("server {} stays out for {}: the request that tried it failed",
                          mark.backend_->name, in_seconds(mark.health_.ejected_until() - now)));
}

void HealthBoard::not_tried(HealthMark& mark) {
  const std::lock_guard lock(mutex_);
  mark.standing_.store(mark.health_.standing(), std::memory_order_relaxed);
}

// --- control thread, and the one that checks ----------------------------------------------------

void HealthBoard::configure(const Pool& pool) {
  const std::lock_guard lock(mutex_);
  const bool judged = outlier_.has_value();
  checks_ = pool.config.health;
  outlier_ = pool.config.outlier;
  panic_ = pool.config.panic;
  fail_fast_ = pool.config.failover == config::Failover::fail_fast;
  threshold_.store(outlier_ ? outlier_->consecutive_failures : 0, std::memory_order_relaxed);
  lost_after_.store(
      pool.config.protocol == config::Protocol::memcached ? pool.config.memcached.down_after : 0,
      std::memory_order_relaxed);
  list(pool);
  if (outlier_ && !judged) begin_interval();
  for (const Server& server : pool.servers) {
    HealthMark& mark = *server.health;
    if (!mark.watched_) {
      forget(mark);
      continue;
    }
    update(mark, "it is no longer watched", [&](ServerHealth& health) {
      if (!checks_) health.forget_checks();
      if (!outlier_) health.forget_ejections();
    });
  }
  recount();
}

void HealthBoard::checked(HealthMark& mark, bool passed, std::string why) {
  HealthCounters& counters = mark.backend_->health;
  (passed ? counters.checks_passed : counters.checks_failed)
      .fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (!checks_ || !mark.watched_) return;
  const std::string cause = passed ? "its checks pass" : "its checks fail, the last: " + why;
  if (!passed) {
    mark.check_error_ = std::move(why);
    mark.check_failed_at_ = std::chrono::system_clock::now();
  }
  update(mark, cause, [&](ServerHealth& health) { health.checked(passed, *checks_); });
}

void HealthBoard::pass_time() {
  const std::lock_guard lock(mutex_);
  if (!outlier_) return;
  const Time now = clock_();
  for (const auto& mark : marks_)
    update(*mark, {}, [&](ServerHealth& health) { health.pass_time(now); });
  if (now >= judge_at_) judge_successes();
}

std::vector<HealthChange> HealthBoard::take_changes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

HealthReport HealthBoard::report(const HealthMark& mark) const {
  const std::lock_guard lock(mutex_);
  const ServerHealth& health = mark.health_;
  HealthReport report{.standing = health.standing(),
                      .checked = health.has_result(),
                      .passing = health.passing(),
                      .ejected = health.ejected(),
                      .ejections_in_a_row = health.ejections_in_a_row(),
                      .ejected_until = {},
                      .cause = mark.cause_,
                      .since = mark.since_,
                      .last_failure = {}};
  if (health.ejected())
    report.ejected_until =
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::milliseconds>(health.ejected_until() - clock_());
  if (mark.check_failed_at_)
    report.last_failure = {"check: " + mark.check_error_, *mark.check_failed_at_};
  if (const std::uint64_t last = mark.last_failure_.load(std::memory_order_relaxed)) {
    const HealthReport::Wall at{std::chrono::milliseconds(last >> 8)};
    if (!report.last_failure || at > report.last_failure->time)
      report.last_failure = {
          "request: " + std::string(describe(static_cast<BackendError>(last & 0xff))), at};
  }
  return report;
}

// --- inside, the mutex held ---------------------------------------------------------------------

void HealthBoard::list(const Pool& pool) {
  for (const auto& mark : std::exchange(marks_, {})) mark->watched_ = false;
  for (const Server& server : pool.servers) {
    HealthMark& mark = *server.health;
    mark.watched_ = server.config.state != config::ServerState::down;
    mark.on_ring_ = server.config.on_ring();
    marks_.push_back(server.health);
  }
}

void HealthBoard::forget(HealthMark& mark) {
  mark.health_ = {};
  mark.away_.store(false, std::memory_order_release);
  mark.standing_.store(mark.health_.standing(), std::memory_order_relaxed);
  mark.failures_.store(0, std::memory_order_relaxed);
  mark.cause_.clear();
  mark.since_.reset();
}

// True when workers see the server differently now.
template <class Act>
bool HealthBoard::update(HealthMark& mark, std::string_view why, Act act) {
  const Standing before = mark.health_.standing();
  act(mark.health_);
  if (mark.health_.standing() == before) return false;
  show(mark, before, why);
  return true;
}

void HealthBoard::show(HealthMark& mark, Standing before, std::string_view why) {
  const Standing now = mark.health_.standing();
  const bool usable = now == Standing::usable;
  if (usable) mark.failures_.store(0, std::memory_order_relaxed);
  mark.standing_.store(now, std::memory_order_relaxed);
  if (usable == (before == Standing::usable)) return;

  mark.cause_ = why;
  mark.since_ = std::chrono::system_clock::now();
  mark.backend_->health.transitions.fetch_add(1, std::memory_order_relaxed);
  if (usable)
    tell(true, fmt::format("server {} is back: {}; its keys come home", mark.backend_->name, why));
  else if (mark.health_.ejected())
    tell(false, fmt::format(
                    "server {} is out for {}: {}; its keys go to the next servers of the ring",
                    mark.backend_->name, in_seconds(mark.health_.ejected_until() - clock_()), why));
  else
    tell(false, fmt::format("server {} is down: {}; its keys {}", mark.backend_->name, why,
                            fail_fast_ ? "have no server until it is back"
                                       : "go to the next servers of the ring"));
  recount();
}

void HealthBoard::eject(HealthMark& mark, const std::string& why) {
  const bool counts = outlier_ && mark.watched_ && mark.on_ring_;
  if (!counts || mark.health_.standing() != Standing::usable) return;
  std::size_t servers = 0, ejected = 0;
  for (const auto& one : marks_) {
    if (!one->on_ring_) continue;
    ++servers;
    if (one->health_.ejected()) ++ejected;
  }
  const Time now = clock_();
  if (ejected >= most_ejected(servers, outlier_->max_ejected)) {
    if (now < spare_again_at_) return;
    spare_again_at_ = now + outlier_->interval;
    return tell(false, fmt::format("server {} is spared although {}: {} of {} servers are ejected, "
                                   "and max_ejected allows no more",
                                   mark.backend_->name, why, ejected, servers));
  }
  mark.backend_->health.ejections.fetch_add(1, std::memory_order_relaxed);
  update(mark, why, [&](ServerHealth& health) { health.eject(now, *outlier_, chance()); });
}

void HealthBoard::begin_interval() {
  judge_at_ = clock_() + outlier_->interval;
  for (const auto& mark : marks_) mark->seen_ = tally_of(*mark->backend_);
}

void HealthBoard::judge_successes() {
  std::vector<HealthMark*> judged;
  std::vector<Tally> tallies;
  for (const auto& mark : marks_) {
    const Tally total = tally_of(*mark->backend_);
    const Tally before = mark->seen_;
    if (!mark->on_ring_ || mark->health_.standing() != Standing::usable) continue;
    judged.push_back(mark.get());
    tallies.push_back({total.good - before.good, total.bad - before.bad});
  }
  begin_interval();
  for (const std::size_t i : stragglers(tallies, *outlier_))
    eject(*judged[i],
          fmt::format("{} of {} requests failed in {}, more than of the other servers",
                      tallies[i].bad, tallies[i].total(), in_seconds(outlier_->interval)));
}

void HealthBoard::recount() {
  std::size_t servers = 0, usable = 0;
  for (const auto& one : marks_) {
    if (!one->on_ring_) continue;
    ++servers;
    if (one->health_.standing() == Standing::usable) ++usable;
  }
  const bool panicked = panic();
  State state = usable == servers ? State::well : State::impaired;
  if (panics(usable, servers, panic_)) state = State::panic;
  state_.store(state, std::memory_order_relaxed);
  if ((state == State::panic) == panicked) return;
  if (panicked)
    tell(true, fmt::format("{} of {} servers can be used: health counts again", usable, servers));
  else
    tell(false, fmt::format("panic: {} of {} servers can be used, so health is left out of account",
                            usable, servers));
}

void HealthBoard::tell(bool good, std::string text) {
  if (changes_.size() < kMostChanges) changes_.push_back({pool_, std::move(text), good});
}

double HealthBoard::chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

}  // namespace clockwise::upstream
