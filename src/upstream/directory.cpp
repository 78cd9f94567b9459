#include "upstream/directory.h"

#include <algorithm>

namespace clockwise::upstream {

namespace {

// A watch that nobody but its Remap holds.
bool at_rest(const std::shared_ptr<const RemapWatch>& watch) {
  return !watch || watch.use_count() == 1;
}

bool has_settled(const Remap& remap) {
  if (!at_rest(remap.watch) || !std::ranges::all_of(remap.continued, at_rest)) return false;
  // Pairs with the release by which the last worker gave its reference back.
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

// The same change without the ring it remembers: 100 of them in the history would be too large.
RemapPtr settled(const Remap& remap) {
  auto copy = std::make_shared<Remap>(remap);
  copy->counted_before = remap.remapped_requests();
  copy->watch.reset();
  copy->continued.clear();
  return copy;
}

}  // namespace

std::string_view to_string(ReloadResult result) noexcept {
  switch (result) {
    case ReloadResult::applied:
      return "applied";
    case ReloadResult::unchanged:
      return "unchanged";
    case ReloadResult::invalid:
      return "invalid";
    case ReloadResult::refused:
      return "refused";
    case ReloadResult::unreadable:
      return "unreadable";
  }
  return "";
}

void DurationHistogram::observe(double seconds) noexcept {
  const double ns = seconds * 1e9;
  std::size_t i = 0;
  while (i < metrics::kDelayBuckets.size() && ns > static_cast<double>(metrics::kDelayBuckets[i]))
    ++i;
  ++buckets[i];
  sum_seconds += seconds;
}

const Cache* View::cache(std::string_view name) const noexcept {
  if (!routing) return nullptr;
  for (const auto& one : routing->caches)
    if (one->config.name == name) return one.get();
  return nullptr;
}

Directory::Directory(std::size_t max_workers, WallClock::time_point started, SteadyClock clock)
    : max_workers_(max_workers),
      clock_(std::move(clock)),
      workers_(std::make_shared<metrics::PerWorker<metrics::WorkerCells>>(max_workers)),
      grace_(config::Metrics{}.removed_grace) {
  state_.workers = workers_;
  state_.started = started;
}

std::size_t Directory::max_workers() const noexcept { return max_workers_; }

metrics::PerWorker<metrics::WorkerCells>& Directory::workers() noexcept { return *workers_; }

std::shared_ptr<metrics::PerWorker<metrics::WorkerCells>> Directory::shared_workers() noexcept {
  return workers_;
}

View Directory::view() const {
  const std::lock_guard lock(mutex_);
  View view = state_;
  view.now = clock_();
  view.ready = state_.ready && !state_.stopping;
  copy_counters(view);
  for (const auto& remap : counting_)
    view.remapped_requests[{remap->report.pool, remap->cause}] += remap->remapped_requests();
  return view;
}

void Directory::copy_counters(View& view) const {
  for (const auto& [key, entry] : backends_)
    if (entry.removed && !expired(entry.removed))
      view.removed.push_back({entry.counters, *entry.removed});
  for (const auto& [key, entry] : pools_)
    if (entry.removed && !expired(entry.removed)) view.removed_pools.push_back(entry.counters);
  for (const auto& [key, entry] : listeners_)
    if (entry.published && !expired(entry.removed)) view.listeners.push_back(entry.counters);
  copy_caches(view);
  for (const auto& [key, totals] : state_.remap_totals) {
    const auto pool = pools_.find(key.first);
    if (pool != pools_.end() && !expired(pool->second.removed)) view.remaps_total += totals.remaps;
  }
}

// What a pool has counted at a cache shows in the one place or the other: a sum never falls.
void Directory::copy_caches(View& view) const {
  for (const auto& [name, entry] : cache_totals_)
    if (!expired(entry.removed)) view.cache_totals.push_back(*entry.counters);
  for (const auto& [key, entry] : caches_) {
    if (!entry.published) continue;
    if (!expired(entry.removed)) {
      view.caches.push_back(entry.counters);
      continue;
    }
    const auto totals = std::ranges::find(view.cache_totals, key.second, &CacheTotals::cache);
    if (totals != view.cache_totals.end()) totals->past_pools.add(*entry.counters);
  }
}

bool Directory::expired(const std::optional<Time>& removed) const {
  return removed && clock_() - *removed > grace_;
}

template <class Key, class Counters, class Make>
std::shared_ptr<Counters> Directory::find_or_make(Entries<Key, Counters>& entries, const Key& key,
                                                  Make make) {
  const std::lock_guard lock(mutex_);
  expire();
  auto& entry = entries[key];
  if (!entry.counters) entry.counters = make();
  return entry.counters;
}

std::shared_ptr<Backend> Directory::backend(const std::string& pool, const std::string& name) {
  return find_or_make(backends_, BackendKey{pool, name},
                      [&] { return std::make_shared<Backend>(pool, name, max_workers_); });
}

std::shared_ptr<PoolCounters> Directory::pool(const std::string& name) {
  return find_or_make(pools_, name,
                      [&] { return std::make_shared<PoolCounters>(name, max_workers_); });
}

std::shared_ptr<ListenerCounters> Directory::listener(const std::string& name) {
  return find_or_make(listeners_, name,
                      [&] { return std::make_shared<ListenerCounters>(name, max_workers_); });
}

std::shared_ptr<CacheTotals> Directory::totals(const std::string& cache) {
  return find_or_make(cache_totals_, cache,
                      [&] { return std::make_shared<CacheTotals>(cache, max_workers_); });
}

std::shared_ptr<CacheCounters> Directory::cache(const std::string& pool, const std::string& name) {
  const auto shared = totals(name)->shared;
  return find_or_make(caches_, PoolAndCache{pool, name}, [&] {
    return std::make_shared<CacheCounters>(pool, name, max_workers_, shared);
  });
}

void Directory::publish(std::shared_ptr<const Routing> routing,
                        std::shared_ptr<const config::Config> config, std::string config_file,
                        std::string config_digest, std::shared_ptr<const config::Config> written) {
  std::map<BackendKey, std::shared_ptr<Backend>> backends;
  std::map<std::string, std::shared_ptr<PoolCounters>> pools;
  std::map<PoolAndCache, std::shared_ptr<CacheCounters>> caches;
  std::map<std::string, std::shared_ptr<CacheTotals>> cache_totals;
  const auto key_of = [](const CacheUse& use) {
    return PoolAndCache{use.counters->pool, use.counters->cache};
  };
  for (const auto& pool : routing->pools) {
    pools[pool->config.name] = pool->counters;
    if (pool->cache.cache) caches[key_of(pool->cache)] = pool->cache.counters;
    for (const CacheUse& use : pool->route_caches) caches[key_of(use)] = use.counters;
    for (const Server& server : pool->servers)
      backends[{pool->config.name, server.config.name}] = server.backend;
  }
  for (const auto& cache : routing->caches)
    cache_totals[cache->config.name] = totals(cache->config.name);

  const std::lock_guard lock(mutex_);
  std::map<std::string, std::shared_ptr<ListenerCounters>> listeners;
  for (const config::Listener& listener : config->listeners)
    if (const auto found = listeners_.find(listener.name); found != listeners_.end())
      listeners[listener.name] = found->second.counters;

  continue_watches(*routing);
  grace_ = config->metrics.removed_grace;
  sweep(backends_, backends);
  sweep(pools_, pools);
  sweep(listeners_, listeners);
  sweep(caches_, caches);
  sweep(cache_totals_, cache_totals);
  add_past_stores(*routing);
  state_.routing = std::move(routing);
  state_.written = written ? std::move(written) : config;
  state_.config = std::move(config);
  state_.config_file = std::move(config_file);
  state_.config_digest = std::move(config_digest);
  expire();
}

// Stores that run and are not in `next`.
void Directory::add_past_stores(const Routing& next) {
  if (!state_.routing) return;
  for (const auto& cache : state_.routing->caches) {
    const auto same = [&](const auto& one) { return one->store == cache->store; };
    if (std::ranges::any_of(next.caches, same)) continue;
    const auto totals = cache_totals_.find(cache->config.name);
    if (totals != cache_totals_.end()) totals->second.counters->add_past(*cache->store);
  }
}

// What is present is in use; what is not was removed now or earlier, or belonged to a reload that
// never came to be.
template <class Key, class Counters>
void Directory::sweep(Entries<Key, Counters>& entries,
                      const std::map<Key, std::shared_ptr<Counters>>& present) {
  std::erase_if(entries, [&](const auto& item) {
    return !item.second.published && !present.contains(item.first);
  });
  const Time now = clock_();
  for (auto& [key, entry] : entries)
    if (!entry.removed && !present.contains(key)) entry.removed = now;
  for (const auto& [key, counters] : present)
    if (counters) entries[key] = {counters, true, std::nullopt};
}

template <class Key, class Counters>
std::vector<Key> Directory::drop_expired(Entries<Key, Counters>& entries) {
  std::vector<Key> dropped;
  std::erase_if(entries, [&](const auto& item) {
    if (!expired(item.second.removed)) return false;
    dropped.push_back(item.first);
    return true;
  });
  return dropped;
}

void Directory::expire() {
  settle_watches();
  drop_expired(backends_);
  drop_expired(listeners_);
  expire_caches();
  drop_expired(cache_totals_);
  for (const std::string& name : drop_expired(pools_)) forget_pool(name);
}

void Directory::expire_caches() {
  std::erase_if(caches_, [&](const auto& item) {
    const auto& [key, entry] = item;
    if (!expired(entry.removed)) return false;
    const auto totals = cache_totals_.find(key.second);
    if (totals != cache_totals_.end()) totals->second.counters->past_pools.add(*entry.counters);
    return true;
  });
}

void Directory::forget_pool(const std::string& name) {
  const auto of_pool = [&](const auto& item) { return item.first.first == name; };
  std::erase_if(state_.remap_totals, of_pool);
  std::erase_if(state_.remapped_requests, of_pool);
  std::erase_if(counting_, [&](const auto& remap) { return remap->report.pool == name; });
  state_.remaps_refused.erase(name);
  state_.last_remap.erase(name);
  state_.ring_build_duration.erase(name);
}

void Directory::restore(SavedHistory saved) {
  const std::lock_guard lock(mutex_);
  state_.last_remap_id = saved.last_id;
  for (Remap& remap : saved.remaps) {
    auto kept = std::make_shared<const Remap>(std::move(remap));
    state_.last_remap.try_emplace(kept->report.pool, kept);
    state_.history.push_back(std::move(kept));
  }
  keep_limits();
}

RemapPtr Directory::record_remap(Remap remap) {
  const std::lock_guard lock(mutex_);
  remap.id = ++state_.last_remap_id;
  RemapTotals& totals = state_.remap_totals[{remap.report.pool, remap.cause}];
  ++totals.remaps;
  totals.keyspace_moved += remap.report.moved_ratio;

  auto kept = std::make_shared<const Remap>(std::move(remap));
  state_.last_remap[kept->report.pool] = kept;
  state_.history.insert(state_.history.begin(), kept);
  if (state_.history.size() > kHistory) state_.history.pop_back();
  settle_watches();
  counting_.push_back(kept);
  keep_limits();
  return kept;
}

// A watch that nobody else holds can count no more: its sum moves to the totals, and the ring it
// remembers is released.
void Directory::settle_watches() {
  std::erase_if(counting_, [&](const RemapPtr& remap) {
    if (!has_settled(*remap)) return false;
    const std::string& pool = remap->report.pool;
    const auto closed = settled(*remap);
    state_.remapped_requests[{pool, remap->cause}] += closed->remapped_requests();
    replace(remap, closed);
    return true;
  });
}

void Directory::replace(const RemapPtr& remap, const RemapPtr& by) {
  std::replace(state_.history.begin(), state_.history.end(), remap, by);
  const auto last = state_.last_remap.find(remap->report.pool);
  if (last != state_.last_remap.end() && last->second == remap) last->second = by;
}

void Directory::keep_limits() {
  for (const auto& [remap, thinner] : above(kInMemory, state_.history)) {
    replace(remap, thinner);
    std::replace(counting_.begin(), counting_.end(), remap, thinner);
  }
}

// A watch with the previous ring of a change that still counts goes on counting for that change.
void Directory::continue_watches(const Routing& routing) {
  for (const auto& pool : routing.pools) {
    if (!pool->watch || !pool->watch->previous) continue;
    for (auto& remap : counting_) {
      if (!remap->watch || remap->watch->previous != pool->watch->previous) continue;
      const std::shared_ptr<const RemapWatch> watch = pool->watch;
      if (remap->watch == watch || std::ranges::count(remap->continued, watch) > 0) continue;
      auto copy = std::make_shared<Remap>(*remap);
      copy->continued.push_back(watch);
      replace(remap, copy);
      remap = std::move(copy);
    }
  }
}

void Directory::record_reload(ReloadOutcome outcome) {
  const bool applied = outcome.result == ReloadResult::applied;
  const std::lock_guard lock(mutex_);
  ++state_.reloads[{outcome.trigger, outcome.result}];
  state_.last_attempt = outcome.time;
  state_.last_successful = applied || outcome.result == ReloadResult::unchanged;
  if (applied) state_.last_success = outcome.time;
  // At the start there is no change that waited to be applied.
  if (applied && outcome.trigger != Trigger::start)
    state_.reload_duration.observe(outcome.duration_seconds);
  if (outcome.result == ReloadResult::refused) count_refusals(outcome.pools);
  state_.last_reload = std::move(outcome);
}

void Directory::record_refusal(const std::vector<Report>& pools) {
  const std::lock_guard lock(mutex_);
  count_refusals(pools);
}

void Directory::count_refusals(const std::vector<Report>& pools) {
  for (const Report& report : pools)
    if (report.refused_by != Guard::none) ++state_.remaps_refused[report.pool];
}

void Directory::record_ring_build(const std::string& pool, double seconds) {
  const std::lock_guard lock(mutex_);
  state_.ring_build_duration[pool].observe(seconds);
}

void Directory::set_watch_up(bool up) {
  const std::lock_guard lock(mutex_);
  state_.watch_up = up;
}

void Directory::set_ready(bool ready) {
  const std::lock_guard lock(mutex_);
  state_.ready = ready;
}

void Directory::set_stopping() {
  const std::lock_guard lock(mutex_);
  state_.stopping = true;
}

}  // namespace clockwise::upstream
