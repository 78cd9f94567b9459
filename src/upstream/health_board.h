// The health of a pool's servers, where checks and failures are reported and workers look.
//
// Workers read flags: one relaxed load for a request while all is well, and they write only when a
// request failed. What follows from a failure or a check is decided under a mutex, by whoever
// reports it; none of that happens on the way of a request that succeeds.
//
// A server that keeps its name and address keeps its mark, and a pool that keeps its name its
// board, through reloads. Functions may be called by any thread unless they say otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/cells.h"
#include "upstream/health.h"

namespace clockwise::upstream {

struct Backend;
struct Pool;

// Counters of a server's health; they outlive the mark as Backend does.
struct HealthCounters {
  std::atomic<std::uint64_t> checks_passed{0}, checks_failed{0}, transitions{0}, ejections{0};
};

// "no connection"
[[nodiscard]] std::string_view describe(metrics::BackendError failure) noexcept;

// What is known of one server, for whoever asks.
struct HealthReport {
  using Wall = std::chrono::system_clock::time_point;
  struct Failure {
    std::string cause;
    Wall time;
  };

  Standing standing = Standing::usable;
  bool checked = false;  // there is a result of a check
  bool passing = true;
  bool ejected = false;  // also while on trial
  std::uint32_t ejections_in_a_row = 0;
  std::optional<Wall> ejected_until;
  std::string cause;                    // of the last change between usable and not
  std::optional<Wall> since;            // when that was
  std::optional<Failure> last_failure;  // of a request or a check
};

// One server, as workers see it.
class HealthMark {
 public:
  explicit HealthMark(std::shared_ptr<Backend> backend);

  [[nodiscard]] bool usable() const noexcept {
    return standing_.load(std::memory_order_relaxed) == Standing::usable;
  }
  // It is on trial, and no request tries it yet.
  [[nodiscard]] bool awaits_trial() const noexcept {
    return standing_.load(std::memory_order_relaxed) == Standing::on_trial;
  }
  // A memcached server that is not asked until a probe is answered (HealthBoard::lost).
  [[nodiscard]] bool away() const noexcept { return away_.load(std::memory_order_acquire); }
  // The newest request that tells something about it failed.
  [[nodiscard]] bool failing() const noexcept {
    return failures_.load(std::memory_order_relaxed) != 0;
  }
  // A request has its answer, complete.
  void succeeded() noexcept {
    if (failures_.load(std::memory_order_relaxed) != 0)
      failures_.store(0, std::memory_order_relaxed);
  }
  // Whether this request is the one that tries a server on trial. Who gets true must end the trial
  // by HealthBoard::tried, failed or not_tried.
  [[nodiscard]] bool begin_trial() noexcept {
    Standing expected = Standing::on_trial;
    return awaits_trial() && standing_.compare_exchange_strong(expected, Standing::unusable,
                                                               std::memory_order_relaxed);
  }

 private:
  friend class HealthBoard;
  using Wall = std::chrono::system_clock::time_point;

  const std::shared_ptr<Backend> backend_;
  std::atomic<Standing> standing_{Standing::usable};
  std::atomic<bool> away_{false};
  std::atomic<std::uint32_t> failures_{0};  // of requests, in a row

  // Guarded by the mutex of the board.
  bool watched_ = false;  // in the snapshot that is served, and not `down`
  bool on_ring_ = false;
  ServerHealth health_;
  Tally seen_;  // at the begin of the interval
  std::string cause_;
  std::optional<Wall> since_;
  std::string check_error_;
  std::optional<Wall> check_failed_at_;

  // The newest failure of a request: milliseconds since the epoch, times 256, plus the cause.
  std::atomic<std::uint64_t> last_failure_{0};
};

// Something an operator should know, once.
struct HealthChange {
  std::string pool;
  std::string text;   // "server b is out: …"
  bool good = false;  // it got better
};

class HealthBoard {
 public:
  using Time = ServerHealth::Time;
  using Clock = std::function<Time()>;

  explicit HealthBoard(std::string pool, Clock clock = std::chrono::steady_clock::now);

  // --- workers

  // No server of the ring is out: a request need not look further.
  [[nodiscard]] bool all_well() const noexcept {
    return state_.load(std::memory_order_relaxed) == State::well;
  }
  // So few can be used that health is left out of account.
  [[nodiscard]] bool panic() const noexcept {
    return state_.load(std::memory_order_relaxed) == State::panic;
  }
  // A request to the server failed in a way that tells something about it. `trial`: it was the one
  // that tried it.
  void failed(HealthMark& mark, metrics::BackendError cause, bool trial);
  // A memcached server is not asked from now on, until a probe found it again. failed() finds that
  // out by itself after `memcached.down_after` failures in a row.
  void lost(HealthMark& mark, std::string_view why);
  void found(HealthMark& mark);
  // The request that tried it got an answer (`good`), or one that speaks against it.
  void tried(HealthMark& mark, bool good);
  // The trial ended without telling anything: another request tries it.
  void not_tried(HealthMark& mark);

  // --- control thread, and the one that checks

  // The rules and the servers of the snapshot that is served from now on. Servers that are new
  // begin without a history; what rules no longer ask for is forgotten, and so is all of a server
  // that is `down`: that is nobody's recovery, so it counts as no change.
  void configure(const Pool& pool);
  void checked(HealthMark& mark, bool passed, std::string why);
  // Ends ejections that are over, judges the shares of successes when an interval is.
  void pass_time();
  [[nodiscard]] std::vector<HealthChange> take_changes();

  [[nodiscard]] HealthReport report(const HealthMark& mark) const;

 private:
  enum class State : std::uint8_t { well, impaired, panic };

  void list(const Pool& pool);
  static void forget(HealthMark& mark);
  template <class Act>
  bool update(HealthMark& mark, std::string_view why, Act act);
  void show(HealthMark& mark, Standing before, std::string_view why);
  void eject(HealthMark& mark, const std::string& why);
  void begin_interval();
  void judge_successes();
  void recount();
  void tell(bool good, std::string text);
  [[nodiscard]] double chance();

  const std::string pool_;
  const Clock clock_;
  std::atomic<State> state_{State::well};
  std::atomic<std::uint32_t> threshold_{0};   // failures in a row; 0: not ejected by them
  std::atomic<std::uint32_t> lost_after_{0};  // the same, until it is away; 0: never

  mutable std::mutex mutex_;
  std::optional<config::Health> checks_;
  std::optional<config::Outlier> outlier_;
  double panic_ = 0;
  bool fail_fast_ = false;
  std::vector<std::shared_ptr<HealthMark>> marks_;  // those that are listed
  Time judge_at_{};
  Time spare_again_at_{};  // when it may be told again that max_ejected spared a server
  std::vector<HealthChange> changes_;
  std::minstd_rand random_;
};

}  // namespace clockwise::upstream
