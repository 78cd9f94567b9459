#include "admin/collect.h"

#include <algorithm>
#include <string>

#include "base/version.h"
#include "cache/store.h"

namespace clockwise::admin {

namespace {

using config::PerBackend;
using metrics::HistogramValue;
using metrics::Id;
using metrics::Page;
using upstream::View;

double unix_seconds(upstream::WallClock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double number(std::uint64_t n) { return static_cast<double>(n); }
double flag(bool set) { return set ? 1 : 0; }

template <class Key, class Value>
Value value_or_zero(const std::map<Key, Value>& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? Value{} : found->second;
}

// The histogram that `get` picks from each worker's cells, summed.
template <std::size_t N, const std::array<std::uint64_t, N>& Bounds, class T, class Get>
HistogramValue sum_histogram(const metrics::PerWorker<T>& cells, Get get) {
  HistogramValue value{Bounds, std::vector<std::uint64_t>(N + 1), 0};
  for (const T& of_worker : cells.all()) {
    const metrics::HistogramCells<N, Bounds>& histogram = get(of_worker);
    for (std::size_t i = 0; i <= N; ++i) value.buckets[i] += histogram.buckets[i].get();
    value.sum_seconds += number(histogram.sum_ns.get()) / 1e9;
  }
  return value;
}

HistogramValue to_value(const upstream::DurationHistogram& histogram) {
  return {metrics::kDelayBuckets,
          {histogram.buckets.begin(), histogram.buckets.end()},
          histogram.sum_seconds};
}

constexpr std::string_view kMemory = metrics::kTiers[0], kShared = metrics::kTiers[1];

constexpr auto kEvictionAgesNs = [] {
  std::array<std::uint64_t, cache::kEvictionAges.size()> ns{};
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] = cache::kEvictionAges[i] * 1'000'000'000ULL;
  return ns;
}();

class Collector {
 public:
  Collector(const View& view, Page& page)
      : view_(view), page_(page), detail_(backend_detail(view)) {}

  void process(const metrics::ProcessFacts& facts) {
    page_.add(Id::build_info, {version(), revision(), compiler()}, 1);
    page_.add(Id::process_start_time_seconds, {}, unix_seconds(view_.started));
    page_.add(Id::process_cpu_seconds_total, {}, facts.cpu_seconds);
    page_.add(Id::process_resident_memory_bytes, {}, number(facts.resident_bytes));
    page_.add(Id::process_open_fds, {}, number(facts.open_fds));
    page_.add(Id::process_max_fds, {}, number(facts.max_fds));
  }

  // A worker that stopped keeps its series: a counter never vanishes while the process lives.
  void workers() {
    const auto cells = view_.workers->all();
    const std::size_t running = view_.config ? view_.config->workers : 0;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (const auto busy = cells[i].busy_ns.get(); busy > 0 || i < running)
        page_.add(Id::worker_busy_seconds_total, {std::to_string(i)}, number(busy) / 1e9);
    page_.add(Id::worker_loop_delay_seconds, {},
              sum_histogram<8, metrics::kDelayBuckets>(
                  *view_.workers, [](const auto& cell) -> auto& { return cell.loop_delay; }));
    page_.add(Id::log_messages_dropped_total, {},
              number(view_.workers->sum([](const auto& c) { return c.log_dropped.get(); })));
  }

  void configuration() {
    using upstream::ReloadResult, upstream::Trigger;
    for (const auto trigger :
         {Trigger::start, Trigger::watch, Trigger::poll, Trigger::signal, Trigger::api})
      for (const auto result :
           {ReloadResult::applied, ReloadResult::unchanged, ReloadResult::invalid,
            ReloadResult::refused, ReloadResult::unreadable})
        page_.add(Id::config_reloads_total, {to_string(trigger), to_string(result)},
                  number(value_or_zero(view_.reloads, {trigger, result})));
    page_.add(Id::config_last_reload_successful, {}, flag(view_.last_successful));
    page_.add(Id::config_last_reload_success_timestamp_seconds, {},
              unix_seconds(view_.last_success));
    page_.add(Id::config_last_reload_attempt_timestamp_seconds, {},
              unix_seconds(view_.last_attempt));
    page_.add(Id::config_reload_duration_seconds, {}, to_value(view_.reload_duration));
    if (view_.config) page_.add(Id::config_info, {view_.config_digest}, 1);
    page_.add(Id::config_watch_up, {}, flag(view_.watch_up));
  }

  void listener(const upstream::ListenerCounters& listener) {
    const std::string& name = listener.name;
    const auto sum = [&](auto get) { return number(listener.cells.sum(get)); };
    const auto each = [&](Id id, const auto& values, auto member) {
      for (std::size_t i = 0; i < values.size(); ++i)
        page_.add(id, {name, values[i]}, sum([&](const auto& c) { return (c.*member)[i].get(); }));
    };
    using Cells = metrics::ListenerCells;
    each(Id::http_requests_total, metrics::kClientCodes, &Cells::requests);
    each(Id::http_connections_rejected_total, metrics::kRejected, &Cells::rejected);
    each(Id::http_request_errors_total, metrics::kRequestErrors, &Cells::request_errors);
    page_.add(Id::http_request_duration_seconds, {name},
              sum_histogram<16, metrics::kClientBuckets>(
                  listener.cells, [](const auto& c) -> auto& { return c.duration; }));
    page_.add(Id::http_connections_accepted_total, {name},
              sum([](const auto& c) { return c.accepted.get(); }));
    page_.add(Id::http_received_bytes_total, {name},
              sum([](const auto& c) { return c.received_bytes.get(); }));
    page_.add(Id::http_sent_bytes_total, {name},
              sum([](const auto& c) { return c.sent_bytes.get(); }));

    const double in_flight = sum([](const auto& c) { return c.in_flight.get(); });
    const double active = sum([](const auto& c) { return c.connections_active.get(); });
    const double idle = sum([](const auto& c) { return c.connections_idle.get(); });
    if (!listens(name) && in_flight + active + idle == 0) return;
    page_.add(Id::http_requests_in_flight, {name}, in_flight);
    page_.add(Id::http_connections, {name, "active"}, active);
    page_.add(Id::http_connections, {name, "idle"}, idle);
  }

  void pool(const upstream::Pool& pool) {
    pool_counters(*pool.counters);
    if (pool.config.protocol == config::Protocol::memcached) memcached_counters(*pool.counters);
    ring(pool);
    last_remap(pool.config.name);
    const bool active = pool.watch && view_.now < pool.watch->until;
    page_.add(Id::handoff_active, {pool.config.name}, flag(active));
    page_.add(Id::pool_panic, {pool.config.name}, flag(pool.health->panic()));
    if (detail_ == PerBackend::off) return;
    for (std::size_t i = 0; i < pool.servers.size(); ++i) {
      server(pool, i);
      backend_counters(*pool.servers[i].backend);
      backend_load(*pool.servers[i].backend);
    }
    moved_by_server(pool);
  }

  // What stays of a pool for the grace after it left.
  void pool_counters(const upstream::PoolCounters& pool) {
    const std::string& name = pool.name;
    const auto each = [&](Id id, const auto& values, auto member) {
      for (std::size_t i = 0; i < values.size(); ++i)
        page_.add(id, {name, values[i]},
                  number(pool.cells.sum([&](const auto& c) { return (c.*member)[i].get(); })));
    };
    each(Id::requests_routed_total, metrics::kRouted, &metrics::PoolCells::routed);
    each(Id::retries_total, metrics::kRetryReasons, &metrics::PoolCells::retries);
    each(Id::retries_suppressed_total, metrics::kSuppressed,
         &metrics::PoolCells::retries_suppressed);
    each(Id::hedges_total, metrics::kHedged, &metrics::PoolCells::hedges);
    for (const std::string_view result : metrics::kHandoffResults)
      page_.add(Id::handoff_requests_total, {name, result}, 0);
    for (const std::string_view cause : metrics::kRemapCauses) {
      const std::pair key{name, std::string(cause)};
      const auto totals = value_or_zero(view_.remap_totals, key);
      page_.add(Id::remaps_total, {name, cause}, number(totals.remaps));
      page_.add(Id::remap_keyspace_moved_total, {name, cause}, totals.keyspace_moved);
      page_.add(Id::remapped_requests_total, {name, cause},
                number(value_or_zero(view_.remapped_requests, key)));
    }
    page_.add(Id::remap_refused_total, {name}, number(value_or_zero(view_.remaps_refused, name)));
    page_.add(Id::ring_build_duration_seconds, {name},
              to_value(value_or_zero(view_.ring_build_duration, name)));
  }

  void memcached_counters(const upstream::PoolCounters& pool) {
    for (std::size_t verb = 0; verb < metrics::kMemcachedVerbs.size(); ++verb)
      for (std::size_t result = 0; result < metrics::kMemcachedResults.size(); ++result)
        page_.add(Id::memcached_commands_total,
                  {pool.name, metrics::kMemcachedVerbs[verb], metrics::kMemcachedResults[result]},
                  number(pool.memcached.sum(
                      [=](const auto& c) { return c.commands[verb][result].get(); })));
    page_.add(Id::memcached_keys_digested_total, {pool.name},
              number(pool.memcached.sum([](const auto& c) { return c.keys_digested.get(); })));
    for (std::size_t result = 0; result < metrics::kBackfillResults.size(); ++result)
      page_.add(
          Id::memcached_backfills_total, {pool.name, metrics::kBackfillResults[result]},
          number(pool.memcached.sum([=](const auto& c) { return c.backfills[result].get(); })));
  }

  // What stays of a server for the grace after it left; its gauges only while it is still busy.
  void removed(const upstream::Backend& backend) {
    if (detail_ == PerBackend::off) return;
    backend_counters(backend);
    if (backend.cells.sum([](const auto& c) { return c.in_flight.get(); }) > 0)
      backend_load(backend);
  }

  // What a pool has counted at a cache.
  void cache_counters(const upstream::CacheCounters& counters) {
    const auto each = [&](Id id, const auto& values, auto member) {
      for (std::size_t i = 0; i < values.size(); ++i)
        page_.add(id, {counters.pool, counters.cache, values[i]},
                  number(counters.cells.sum([&](const auto& c) { return (c.*member)[i].get(); })));
    };
    each(Id::cache_requests_total, metrics::kCacheResults, &metrics::CacheCells::requests);
    each(Id::cache_fetches_total, metrics::kCacheFetches, &metrics::CacheCells::fetches);
  }

  // One cache as a whole; of one that was removed, what it has counted.
  void cache(const upstream::CacheTotals& totals) {
    const upstream::Cache* running = view_.cache(totals.cache);
    const cache::Stats stats = totals.stats(running != nullptr ? running->store.get() : nullptr);
    if (running != nullptr) stored(totals.cache, stats);
    left(totals.cache, stats);
    if (running != nullptr && running->purges) shared(totals);
    waiting(totals.cache, running != nullptr);
    purges(totals);

    const upstream::CacheSums sums = totals.sums(view_.caches);
    page_.add(Id::cache_sent_bytes_total, {totals.cache, "store"}, number(sums.sent_from_store));
    page_.add(Id::cache_sent_bytes_total, {totals.cache, "origin"}, number(sums.sent_from_origin));
    for (std::size_t i = 0; i < metrics::kRevalidations.size(); ++i)
      page_.add(Id::cache_revalidations_total, {totals.cache, metrics::kRevalidations[i]},
                number(sums.revalidations[i]));
  }

 private:
  void stored(const std::string& cache, const cache::Stats& stats) {
    page_.add(Id::cache_stored_bytes, {cache, kMemory}, number(stats.bytes));
    page_.add(Id::cache_limit_bytes, {cache, kMemory}, number(stats.limit));
    page_.add(Id::cache_objects, {cache, kMemory}, number(stats.objects));
  }

  void left(const std::string& cache, const cache::Stats& stats) {
    for (std::size_t i = 0; i < metrics::kEvictionReasons.size(); ++i)
      page_.add(Id::cache_evictions_total, {cache, kMemory, metrics::kEvictionReasons[i]},
                number(stats.evictions[i]));
    page_.add(Id::cache_admissions_rejected_total, {cache, kMemory}, number(stats.rejected));
    page_.add(Id::cache_eviction_age_seconds, {cache},
              HistogramValue{kEvictionAgesNs,
                             {stats.eviction_ages.begin(), stats.eviction_ages.end()},
                             stats.eviction_age_sum});
  }

  // The second store, as far as this proxy knows.
  void shared(const upstream::CacheTotals& totals) {
    const std::string& cache = totals.cache;
    const auto sum = [&](auto get) { return number(totals.shared->sum(get)); };
    const auto each = [&](Id id, const auto& values, auto member) {
      for (std::size_t i = 0; i < values.size(); ++i)
        page_.add(id, {cache, values[i]}, sum([&](const auto& c) { return (c.*member)[i].get(); }));
    };
    using Cells = metrics::SharedCells;
    each(Id::cache_shared_lookups_total, metrics::kSharedLookups, &Cells::lookups);
    each(Id::cache_shared_writes_total, metrics::kSharedWrites, &Cells::writes);
    page_.add(Id::cache_stored_bytes, {cache, kShared},
              sum([](const auto& c) { return c.bytes.get(); }));
    page_.add(Id::cache_objects, {cache, kShared},
              sum([](const auto& c) { return c.objects.get(); }));
    for (std::size_t i = 0; i < metrics::kEvictionReasons.size(); ++i)
      page_.add(Id::cache_evictions_total, {cache, kShared, metrics::kEvictionReasons[i]},
                sum([&](const auto& c) { return c.evictions[i].get(); }));
    page_.add(Id::cache_admissions_rejected_total, {cache, kShared}, sum([](const auto& c) {
                using metrics::SharedWrite;
                return at(c.writes, SharedWrite::too_large).get() +
                       at(c.writes, SharedWrite::busy).get();
              }));
  }

  void waiting(const std::string& cache, bool runs) {
    std::uint64_t requests = 0;
    for (const auto& counters : view_.caches)
      if (counters->cache == cache)
        requests += counters->cells.sum([](const auto& c) { return c.waiting.get(); });
    if (runs || requests > 0) page_.add(Id::cache_collapsed_waiting, {cache}, number(requests));
  }

  void purges(const upstream::CacheTotals& totals) {
    using upstream::PurgeResult;
    for (std::size_t i = 0; i < metrics::kPurgeScopes.size(); ++i)
      for (const auto result : {PurgeResult::ok, PurgeResult::error})
        page_.add(Id::cache_purges_total,
                  {totals.cache, metrics::kPurgeScopes[i],
                   metrics::kPurgeResults[static_cast<std::size_t>(result)]},
                  number(totals.purges->get(static_cast<cache::PurgeScope>(i), result)));
  }

  [[nodiscard]] bool listens(std::string_view name) const {
    return view_.config && std::ranges::any_of(view_.config->listeners,
                                               [&](const auto& l) { return l.name == name; });
  }

  [[nodiscard]] bool in_grace(std::string_view pool, std::string_view server) const {
    return std::ranges::any_of(view_.removed, [&](const upstream::RemovedBackend& removed) {
      return removed.backend->pool == pool && removed.backend->name == server;
    });
  }

  void ring(const upstream::Pool& pool) {
    const std::string& name = pool.config.name;
    page_.add(Id::ring_info,
              {name, pool.digest, std::string(ring::to_string(pool.config.ring.scheme.placement))},
              1);
    std::size_t usable = 0, down = 0, draining = 0;
    for (const upstream::Server& server : pool.servers) {
      const bool drains = server.config.state == config::ServerState::draining;
      if (drains) ++draining;
      if (is_up(server)) ++usable;
      if (!drains && !is_up(server)) ++down;
    }
    page_.add(Id::ring_backends, {name, "configured"}, number(pool.servers.size()));
    page_.add(Id::ring_backends, {name, "usable"}, number(usable));
    page_.add(Id::ring_backends, {name, "down"}, number(down));
    page_.add(Id::ring_backends, {name, "draining"}, number(draining));
    page_.add(Id::ring_backends, {name, "ramping"}, 0);
  }

  static bool is_up(const upstream::Server& server) {
    return server.config.state == config::ServerState::active && !server.endpoints.empty() &&
           server.health->usable();
  }

  void server(const upstream::Pool& pool, std::size_t index) {
    const upstream::Server& server = pool.servers[index];
    const std::string& name = server.config.name;
    page_.add(Id::ring_share_ratio, {pool.config.name, name},
              pool.ring ? pool.ring->shares()[index] : 0);
    page_.add(Id::backend_weight, {pool.config.name, name}, server.config.weight);
    page_.add(Id::backend_up, {pool.config.name, name}, flag(is_up(server)));
    page_.add(Id::backend_draining, {pool.config.name, name},
              flag(server.config.state == config::ServerState::draining));
  }

  void backend_counters(const upstream::Backend& backend) {
    const auto sum = [&](auto get) { return number(backend.cells.sum(get)); };
    for (std::size_t i = 0; i < metrics::kBackendCodes.size(); ++i)
      page_.add(Id::backend_requests_total, {backend.pool, backend.name, metrics::kBackendCodes[i]},
                sum([&](const auto& c) { return c.requests[i].get(); }));
    for (std::size_t i = 0; i < metrics::kBackendErrors.size(); ++i) {
      double errors = sum([&](const auto& c) { return c.errors[i].get(); });
      if (metrics::kBackendErrors[i] == "resolve")
        errors += number(backend.resolve_errors.load(std::memory_order_relaxed));
      page_.add(Id::backend_errors_total, {backend.pool, backend.name, metrics::kBackendErrors[i]},
                errors);
    }
    const auto count = [](const std::atomic<std::uint64_t>& counter) {
      return number(counter.load(std::memory_order_relaxed));
    };
    page_.add(Id::backend_health_checks_total, {backend.pool, backend.name, "pass"},
              count(backend.health.checks_passed));
    page_.add(Id::backend_health_checks_total, {backend.pool, backend.name, "fail"},
              count(backend.health.checks_failed));
    page_.add(Id::backend_transitions_total, {backend.pool, backend.name},
              count(backend.health.transitions));
    page_.add(Id::backend_ejections_total, {backend.pool, backend.name},
              count(backend.health.ejections));
    page_.add(Id::backend_sent_bytes_total, {backend.pool, backend.name},
              sum([](const auto& c) { return c.sent_bytes.get(); }));
    page_.add(Id::backend_received_bytes_total, {backend.pool, backend.name},
              sum([](const auto& c) { return c.received_bytes.get(); }));
    page_.add(Id::backend_connections_opened_total, {backend.pool, backend.name},
              sum([](const auto& c) { return c.connections_opened.get(); }));
    for (std::size_t i = 0; i < metrics::kQueueRejected.size(); ++i)
      page_.add(Id::backend_queue_rejected_total,
                {backend.pool, backend.name, metrics::kQueueRejected[i]},
                sum([&](const auto& c) { return c.queue_rejected[i].get(); }));
    if (detail_ == PerBackend::full)
      page_.add(Id::backend_request_duration_seconds, {backend.pool, backend.name},
                sum_histogram<10, metrics::kBackendBuckets>(
                    backend.cells, [](const auto& c) -> auto& { return c.duration; }));
  }

  void backend_load(const upstream::Backend& backend) {
    const auto sum = [&](auto get) { return number(backend.cells.sum(get)); };
    page_.add(Id::backend_requests_in_flight, {backend.pool, backend.name},
              sum([](const auto& c) { return c.in_flight.get(); }));
    page_.add(Id::backend_queue, {backend.pool, backend.name},
              sum([](const auto& c) { return c.waiting.get(); }));
    page_.add(Id::backend_connections, {backend.pool, backend.name, "active"},
              sum([](const auto& c) { return c.connections_active.get(); }));
    page_.add(Id::backend_connections, {backend.pool, backend.name, "idle"},
              sum([](const auto& c) { return c.connections_idle.get(); }));
  }

  void last_remap(const std::string& pool) {
    const auto last = value_or_zero(view_.last_remap, pool);
    page_.add(Id::remap_last_moved_ratio, {pool}, last ? last->report.moved_ratio : 0);
    page_.add(Id::remap_last_minimum_ratio, {pool}, last ? last->report.minimum_ratio : 0);
    page_.add(Id::remap_last_timestamp_seconds, {pool}, last ? unix_seconds(last->time) : 0);
  }

  // Every server of the newest change, those that it removed until their grace ends, and at 0 the
  // servers that came later without moving a key.
  void moved_by_server(const upstream::Pool& pool) {
    std::map<std::string_view, std::pair<double, double>> moved;
    for (const upstream::Server& server : pool.servers) moved[server.config.name];
    if (const auto last = value_or_zero(view_.last_remap, pool.config.name))
      for (const upstream::ServerReport& server : last->report.servers)
        if (moved.contains(server.name) || in_grace(pool.config.name, server.name))
          moved[server.name] = {server.lost_ratio, server.gained_ratio};
    for (const auto& [name, ratio] : moved) {
      page_.add(Id::remap_last_lost_ratio, {pool.config.name, name}, ratio.first);
      page_.add(Id::remap_last_gained_ratio, {pool.config.name, name}, ratio.second);
    }
  }

  const View& view_;
  Page& page_;
  const PerBackend detail_;
};

}  // namespace

PerBackend backend_detail(const View& view) {
  const PerBackend wanted = view.config ? view.config->metrics.per_backend : PerBackend::full;
  if (wanted != PerBackend::full || !view.routing) return wanted;
  std::size_t servers = 0;
  for (const auto& pool : view.routing->pools) servers += pool->servers.size();
  return servers > kFullDetail ? PerBackend::basic : PerBackend::full;
}

void collect(const View& view, const metrics::ProcessFacts& process, Page& page) {
  Collector collector(view, page);
  collector.process(process);
  collector.workers();
  collector.configuration();
  for (const auto& listener : view.listeners) collector.listener(*listener);
  if (!view.routing) return;
  for (const auto& pool : view.routing->pools) collector.pool(*pool);
  for (const auto& pool : view.removed_pools) {
    collector.pool_counters(*pool);
    if (pool->memcached_used()) collector.memcached_counters(*pool);
  }
  for (const auto& removed : view.removed) collector.removed(*removed.backend);
  for (const auto& counters : view.caches) collector.cache_counters(*counters);
  for (const auto& totals : view.cache_totals) collector.cache(totals);
}

}  // namespace clockwise::admin
