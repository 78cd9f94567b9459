// The directory: what runs now and what happened, for everyone who looks from outside the request
// path. The control thread (start, reload) writes, the admin thread and the tests read.
//
// One mutex, held for short copies only; workers never touch it. They own plain pointers to the
// counters that live here.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/load.h"
#include "config/model.h"
#include "metrics/cells.h"
#include "upstream/cache_totals.h"
#include "upstream/client_counts.h"
#include "upstream/history.h"
#include "upstream/plan.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

enum class ReloadResult { applied, unchanged, invalid, refused, unreadable };

[[nodiscard]] std::string_view to_string(ReloadResult) noexcept;

struct NotApplied {
  std::string path;    // "listeners[0].address"
  std::string reason;  // "needs a restart: …"
};

struct ReloadOutcome {
  ReloadResult result = ReloadResult::unchanged;
  Trigger trigger = Trigger::start;
  bool forced = false;
  std::string config_digest;
  double duration_seconds = 0;
  WallClock::time_point time{};
  std::vector<Report> pools;  // applied: each changed pool; refused: each pool that a guard refused
  std::vector<NotApplied> not_applied;
  std::vector<config::Problem> errors;  // invalid, unreadable: at least one
  Guard refused_by = Guard::none;       // refused
  std::string message;                  // one line for log and API
  std::vector<std::string> notes;       // further lines for the log
};

// Totals per (pool, cause) since start.
struct RemapTotals {
  std::uint64_t remaps = 0;
  double keyspace_moved = 0;
};

struct ListenerCounters {
  ListenerCounters(std::string listener_name, std::size_t workers)
      : name(std::move(listener_name)), cells(workers) {}
  const std::string name;
  metrics::PerWorker<metrics::ListenerCells> cells;
  ClientCounts clients;
  std::string bound_address;  // with the port that was taken for port 0; set before it is published
};

// A server that left its pool; its counters stay for metrics.removed_grace.
struct RemovedBackend {
  std::shared_ptr<const Backend> backend;
  std::chrono::steady_clock::time_point since;
};

// Durations of rare work, bounds as metrics::kDelayBuckets (not cumulative, last is +Inf).
struct DurationHistogram {
  std::array<std::uint64_t, metrics::kDelayBuckets.size() + 1> buckets{};
  double sum_seconds = 0;

  void observe(double seconds) noexcept;
};

// Everything a reader needs, copied out under the lock; cheap (shared pointers).
struct View {
  std::shared_ptr<const Routing> routing;         // null before the start is complete
  std::shared_ptr<const config::Config> config;   // what runs
  std::shared_ptr<const config::Config> written;  // what the files say; `config` where they agree
  std::vector<std::shared_ptr<const ListenerCounters>> listeners;  // removed ones too, in the grace
  std::vector<RemovedBackend> removed;
  std::vector<std::shared_ptr<const PoolCounters>> removed_pools;
  std::vector<std::shared_ptr<const CacheCounters>> caches;  // removed ones too, in the grace
  std::vector<CacheTotals> cache_totals;                     // the same
  std::shared_ptr<const metrics::PerWorker<metrics::WorkerCells>> workers;
  std::string config_file, config_digest;
  std::optional<ReloadOutcome> last_reload;
  std::map<std::pair<Trigger, ReloadResult>, std::uint64_t> reloads;
  WallClock::time_point last_success{}, last_attempt{};
  bool last_successful = false;
  bool watch_up = true;
  DurationHistogram reload_duration;
  std::map<std::string, DurationHistogram> ring_build_duration;                    // by pool
  std::map<std::pair<std::string, std::string>, RemapTotals> remap_totals;         // (pool, cause)
  std::map<std::string, std::uint64_t> remaps_refused;                             // by pool
  std::map<std::string, RemapPtr> last_remap;                                      // by pool
  std::map<std::pair<std::string, std::string>, std::uint64_t> remapped_requests;  // (pool, cause)
  History history;  // newest first, at most 100, also of earlier processes
  // Since the start, of the pools that are here or within their grace: the sum of those of
  // remap_totals that have a series.
  std::uint64_t remaps_total = 0;
  std::uint64_t last_remap_id = 0;
  std::chrono::steady_clock::time_point now{};  // when the view was taken
  bool ready = false;  // configuration loaded, listeners bound, not stopping
  bool stopping = false;
  WallClock::time_point started{};

  // The cache of that name that runs; null: there is none.
  [[nodiscard]] const Cache* cache(std::string_view name) const noexcept;
};

class Directory {
 public:
  using SteadyClock = std::function<std::chrono::steady_clock::time_point()>;

  // `max_workers`: the most workers this process will ever run; counters are sized by it. `clock`
  // tells when the grace of a removed server ends; tests bring their own.
  Directory(std::size_t max_workers, WallClock::time_point started,
            SteadyClock clock = std::chrono::steady_clock::now);

  [[nodiscard]] View view() const;
  [[nodiscard]] std::size_t max_workers() const noexcept;
  [[nodiscard]] metrics::PerWorker<metrics::WorkerCells>& workers() noexcept;
  [[nodiscard]] std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> shared_workers() noexcept;

  // The counters of that name: those in use, those of a server removed within the grace, or new
  // ones at 0. Control thread.
  std::shared_ptr<Backend> backend(const std::string& pool, const std::string& name);
  std::shared_ptr<PoolCounters> pool(const std::string& name);
  std::shared_ptr<ListenerCounters> listener(const std::string& name);
  std::shared_ptr<CacheCounters> cache(const std::string& pool, const std::string& name);

  // The newest applied state, before or after the workers took it over: routing and configuration
  // become what readers see; backends, pools and listeners that left keep their counters for the
  // grace.
  // `written`: what the files say, where that is not what runs.
  void publish(std::shared_ptr<const Routing> routing, std::shared_ptr<const config::Config> config,
               std::string config_file, std::string config_digest,
               std::shared_ptr<const config::Config> written = nullptr);
  // What an earlier process left behind; ids go on from there. REQUIRES: nothing is recorded yet.
  void restore(SavedHistory saved);
  // One ring change of one pool; gives it its id.
  RemapPtr record_remap(Remap remap);
  // Pools whose change a guard refused.
  void record_refusal(const std::vector<Report>& pools);
  // Every attempt to load the configuration, the start included: counts and remembers it.
  void record_reload(ReloadOutcome outcome);
  void record_ring_build(const std::string& pool, double seconds);
  void set_watch_up(bool up);
  void set_ready(bool ready);
  void set_stopping();

 private:
  using Time = std::chrono::steady_clock::time_point;
  using PoolAndCause = std::pair<std::string, std::string>;
  using PoolAndCache = std::pair<std::string, std::string>;

  // Counters under their name. `removed` is set once the published state lacks them.
  template <class Counters>
  struct Entry {
    std::shared_ptr<Counters> counters;
    bool published = false;
    std::optional<Time> removed;
  };
  template <class Key, class Counters>
  using Entries = std::map<Key, Entry<Counters>>;
  using BackendKey = std::pair<std::string, std::string>;  // pool, server

  [[nodiscard]] bool expired(const std::optional<Time>& removed) const;
  template <class Key, class Counters, class Make>
  std::shared_ptr<Counters> find_or_make(Entries<Key, Counters>& entries, const Key& key,
                                         Make make);
  template <class Key, class Counters>
  void sweep(Entries<Key, Counters>& entries,
             const std::map<Key, std::shared_ptr<Counters>>& present);
  template <class Key, class Counters>
  std::vector<Key> drop_expired(Entries<Key, Counters>& entries);
  void expire();
  [[nodiscard]] std::shared_ptr<CacheTotals> totals(const std::string& cache);
  void expire_caches();
  void add_past_stores(const Routing& next);
  void forget_pool(const std::string& name);
  void settle_watches();
  void replace(const RemapPtr& remap, const RemapPtr& by);
  void keep_limits();
  void count_refusals(const std::vector<Report>& pools);
  void continue_watches(const Routing& routing);
  void copy_counters(View& view) const;
  void copy_caches(View& view) const;

  const std::size_t max_workers_;
  const SteadyClock clock_;
  const std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> workers_;

  mutable std::mutex mutex_;
  View state_;  // what a reader gets, but for `removed`, `listeners` and the sums made at the read
  std::chrono::steady_clock::duration grace_;
  Entries<BackendKey, Backend> backends_;
  Entries<std::string, PoolCounters> pools_;
  Entries<std::string, ListenerCounters> listeners_;
  Entries<PoolAndCache, CacheCounters> caches_;
  Entries<std::string, CacheTotals> cache_totals_;
  // Ring changes whose watch may still count; the sums of all others are in
  // state_.remapped_requests.
  std::vector<RemapPtr> counting_;
};

}  // namespace clockwise::upstream
