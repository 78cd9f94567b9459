#include "admin/describe.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "admin/differs.h"
#include "base/version.h"
#include "cache/store.h"
#include "metrics/catalogue.h"
#include "upstream/explain.h"
#include "upstream/placed.h"
#include "upstream/ring_settings.h"
#include "upstream/server_state.h"

namespace clockwise::admin {

namespace {

namespace json = boost::json;
using upstream::Guard;
using upstream::ReloadOutcome;
using upstream::ReloadResult;
using upstream::View;

std::string_view code_of(Guard guard) {
  return guard == Guard::max_shrink ? "max_shrink" : "max_remap";
}

// A problem of the whole file has no position to tell which file it is.
std::string message_of(const config::Problem& problem) {
  if (problem.position.line > 0 || problem.position.file.empty()) return problem.message;
  return problem.position.file + ": " + problem.message;
}

template <class T>
json::array describe_all(const T& items, auto describe_one) {
  json::array array;
  for (const auto& item : items) array.push_back(describe_one(item));
  return array;
}

// Everything that kept a reload from being applied; nothing when it was.
json::array describe_reasons(const ReloadOutcome& outcome) {
  if (outcome.result == ReloadResult::unreadable) return describe(outcome.errors, "unreadable");
  if (outcome.result != ReloadResult::refused) return describe(outcome.errors, "invalid");
  return describe_all(outcome.pools, [](const upstream::Report& report) {
    return describe_error(code_of(report.refused_by), upstream::guard_reason(report)).at("error");
  });
}

json::value describe_last_reload(const View& view) {
  if (!view.last_reload) return nullptr;
  const ReloadOutcome& last = *view.last_reload;
  return json::object{{"result", to_string(last.result)},
                      {"trigger", to_string(last.trigger)},
                      {"time", rfc3339(last.time)},
                      {"errors", describe_reasons(last)}};
}

json::value describe_last_remap(const View& view, const std::string& pool) {
  const auto last = view.last_remap.find(pool);
  if (last == view.last_remap.end()) return nullptr;
  const upstream::Remap& remap = *last->second;
  return json::object{{"id", remap.id},
                      {"time", rfc3339(remap.time)},
                      {"moved_ratio", remap.report.moved_ratio},
                      {"minimum_ratio", remap.report.minimum_ratio}};
}

json::object describe_requests(const upstream::Backend& backend) {
  json::object requests;
  for (std::size_t i = 0; i < metrics::kBackendCodes.size(); ++i)
    requests[metrics::kBackendCodes[i]] =
        backend.cells.sum([&](const auto& c) { return c.requests[i].get(); });
  return requests;
}

json::object describe_latency(const upstream::Backend& backend) {
  std::array<std::uint64_t, metrics::kBackendBuckets.size() + 1> buckets{};
  for (const metrics::BackendCells& cells : backend.cells.all())
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += cells.duration.buckets[i].get();
  return {{"p50", quantile(metrics::kBackendBuckets, buckets, 0.5)},
          {"p90", quantile(metrics::kBackendBuckets, buckets, 0.9)},
          {"p99", quantile(metrics::kBackendBuckets, buckets, 0.99)}};
}

// What a server has by being in the list; traffic comes from its counters.
struct Place {
  std::uint64_t points = 0;
  double expected = 0, share = 0;
};

std::vector<Place> places(const upstream::Pool& pool) {
  std::vector<Place> result(pool.servers.size());
  if (!pool.ring) return result;
  for (const ring::Point& point : pool.ring->points()) ++result[point.server].points;
  double weights = 0;
  for (const auto& server : pool.servers)
    if (server.config.on_ring()) weights += server.config.weight;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const config::Server& server = pool.servers[i].config;
    if (server.on_ring()) result[i].expected = server.weight / weights;
    result[i].share = pool.ring->shares()[i];
  }
  return result;
}

// In one word: up, down, ejected, or unknown without a result of the checks that are asked for.
std::string_view health_word(const upstream::Pool& pool, const upstream::Server& server,
                             const upstream::HealthReport& report) {
  if (server.endpoints.empty() || !report.passing) return "down";
  if (report.ejected) return "ejected";
  return pool.config.health && !report.checked ? "unknown" : "up";
}

json::value time_or_null(const std::optional<upstream::WallClock::time_point>& time) {
  if (!time) return nullptr;
  return json::string(rfc3339(*time));
}

json::object describe_health(const upstream::HealthReport& report) {
  json::object health{{"since", time_or_null(report.since)},
                      {"cause", nullptr},
                      {"last_failure", nullptr},
                      {"ejections_in_a_row", report.ejections_in_a_row},
                      {"ejected_until", time_or_null(report.ejected_until)}};
  if (report.since) health["cause"] = report.cause;
  if (report.last_failure)
    health["last_failure"] = json::object{{"cause", report.last_failure->cause},
                                          {"time", rfc3339(report.last_failure->time)}};
  return health;
}

std::uint64_t in_flight(const upstream::Backend& backend) {
  return backend.cells.sum([](const auto& c) { return c.in_flight.get(); });
}

// Whether no request is with the server or will be. Those that wait for a connection are read
// first: a request goes from there into flight.
bool safe_to_stop(const upstream::Server& server) {
  if (server.config.state == config::ServerState::active) return false;
  const std::uint64_t waiting =
      server.backend->cells.sum([](const auto& c) { return c.waiting.get(); });
  return waiting == 0 && in_flight(*server.backend) == 0;
}

json::object describe_server(const upstream::Pool& pool, const upstream::Server& server,
                             const Place& place, const WrittenServers& written) {
  const upstream::Backend& backend = *server.backend;
  const upstream::HealthReport health = pool.health->report(*server.health);
  const auto sum = [&](auto get) { return backend.cells.sum(get); };
  return {{"name", server.config.name},
          {"address", server.config.address.text},
          {"zone", server.config.zone},
          {"weight", server.config.weight},
          {"state", upstream::to_string(server.config.state)},
          {"health", health_word(pool, server, health)},
          {"health_detail", describe_health(health)},
          {"points", place.points},
          {"expected_ratio", place.expected},
          {"share_ratio", place.share},
          {"requests_total", describe_requests(backend)},
          {"requests_in_flight", in_flight(backend)},
          {"safe_to_stop", safe_to_stop(server)},
          {"connections",
           json::object{{"active", sum([](const auto& c) { return c.connections_active.get(); })},
                        {"idle", sum([](const auto& c) { return c.connections_idle.get(); })}}},
          {"latency_seconds", describe_latency(backend)},
          {"overridden", written.overridden(server.config)}};
}

template <std::size_t N>
json::object by_word(const std::array<std::string_view, N>& words,
                     const std::array<std::uint64_t, N>& counts) {
  json::object object;
  for (std::size_t i = 0; i < N; ++i) object[words[i]] = counts[i];
  return object;
}

// Names of the pools that use the cache, by themselves or by a route.
json::array users_of(const View& view, const upstream::Cache& cache) {
  const auto is_it = [&](const upstream::CacheUse& use) { return use.cache.get() == &cache; };
  json::array pools;
  for (const auto& pool : view.routing->pools)
    if (is_it(pool->cache) || std::ranges::any_of(pool->route_caches, is_it))
      pools.push_back(json::string(pool->config.name));
  return pools;
}

// By server, where the scheme goes by ids.
std::vector<std::uint32_t> ids_of(const config::Pool& pool) {
  if (!ring::facts(pool.ring.scheme.placement).takes_id) return {};
  return ring::server_ids(config::members_of(pool.servers));
}

bool handoff_active(const View& view, const upstream::Pool& pool) {
  return pool.watch && view.now < pool.watch->until;
}

// Who owned the position before the newest change, when that was another server. Unknown where the
// change gave keys other positions.
std::optional<std::string> previous_owner(const View& view, const upstream::Pool& pool,
                                          const upstream::KeyPlace& place) {
  if (!handoff_active(view, pool) || place.owners.empty()) return std::nullopt;
  const upstream::RemapWatch& watch = *pool.watch;
  if (!watch.previous || watch.previous->empty() || !watch.same_positions) return std::nullopt;
  const ring::ServerIndex before = watch.previous->owner(place.hash);
  const bool same = before < watch.now.size() && watch.now[before] == place.owners[0];
  if (same || before >= watch.names.size()) return std::nullopt;
  return watch.names[before];
}

}  // namespace

std::string rfc3339(upstream::WallClock::time_point time) {
  using namespace std::chrono;
  const auto second = floor<seconds>(time);
  const auto rest = duration_cast<milliseconds>(time - second);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(upstream::WallClock::to_time_t(second)), rest.count());
}

json::value describe(const config::Position& position) {
  if (position.line == 0) return nullptr;
  return json::object{
      {"file", position.file}, {"line", position.line}, {"column", position.column}};
}

json::object describe(const config::Problem& problem, std::string_view code) {
  return {
      {"code", code}, {"message", message_of(problem)}, {"position", describe(problem.position)}};
}

json::array describe(const std::vector<config::Problem>& problems, std::string_view code) {
  return describe_all(problems, [&](const auto& problem) { return describe(problem, code); });
}

json::object describe_error(std::string_view code, std::string_view message, json::value position) {
  return {{"error",
           json::object{{"code", code}, {"message", message}, {"position", std::move(position)}}}};
}

json::object describe_status(const View& view, std::string_view admin_address,
                             upstream::WallClock::time_point now) {
  json::array listeners;
  if (view.config)
    for (const config::Listener& listener : view.config->listeners) {
      const auto counters = std::ranges::find(
          view.listeners, listener.name, [](const auto& l) { return std::string_view(l->name); });
      const bool bound = counters != view.listeners.end() && !(*counters)->bound_address.empty();
      listeners.push_back(
          json::object{{"name", listener.name},
                       {"address", bound ? (*counters)->bound_address : listener.address.text}});
    }
  return {{"version", version()},
          {"revision", revision()},
          {"pid", getpid()},
          {"uptime_seconds", std::chrono::duration<double>(now - view.started).count()},
          {"ready", view.ready},
          {"workers", view.config ? view.config->workers : 0},
          {"listeners", std::move(listeners)},
          {"admin", json::object{{"address", admin_address}}},
          {"config", json::object{{"file", view.config_file}, {"digest", view.config_digest}}},
          {"differs_from_file", differs_from_file(view)},
          {"last_reload", describe_last_reload(view)}};
}

json::object describe_pool(const View& view, const upstream::Pool& pool) {
  const std::vector<Place> place = places(pool);
  const WrittenServers written(view, pool.config.name);
  const std::vector<std::uint32_t> ids = ids_of(pool.config);
  json::array servers;
  for (std::size_t i = 0; i < pool.servers.size(); ++i) {
    json::object server = describe_server(pool, pool.servers[i], place[i], written);
    if (const auto& label = pool.servers[i].config.label) server["label"] = *label;
    if (!ids.empty()) server["id"] = ids[i];
    servers.push_back(std::move(server));
  }
  return {{"name", pool.config.name},
          {"protocol", config::to_string(pool.config.protocol)},
          {"scheme", ring::to_string(pool.config.ring.scheme.placement)},
          {"digest", pool.digest},
          {"ring", upstream::ring_settings(pool.config.ring)},
          {"points_total", pool.ring ? pool.ring->points().size() : 0},
          {"panic", pool.health->panic()},
          {"handoff_active", handoff_active(view, pool)},
          {"last_remap", describe_last_remap(view, pool.config.name)},
          {"servers", std::move(servers)}};
}

json::object describe_cache(const View& view, const upstream::Cache& cache) {
  const std::string& name = cache.config.name;
  const auto& totals = *std::ranges::find(view.cache_totals, name, &upstream::CacheTotals::cache);
  const cache::Stats stats = totals.stats(cache.store.get());
  return {{"name", name},
          {"size", stats.limit},
          {"bytes", stats.bytes},
          {"objects", stats.objects},
          {"requests_total", by_word(metrics::kCacheResults, totals.sums(view.caches).requests)},
          {"evictions_total", by_word(metrics::kEvictionReasons, stats.evictions)},
          {"rejected_total", stats.rejected},
          {"pools", users_of(view, cache)}};
}

json::object describe_ring(const upstream::Pool& pool) {
  json::array points;
  if (pool.ring) {
    points.reserve(pool.ring->points().size());
    for (const ring::Point& point : pool.ring->points())
      points.push_back(json::object{{"position", std::to_string(point.position)},
                                    {"server", pool.servers[point.server].config.name}});
  }
  return {{"pool", pool.config.name},
          {"scheme", ring::to_string(pool.config.ring.scheme.placement)},
          {"digest", pool.digest},
          {"points_total", points.size()},
          {"points", std::move(points)}};
}

json::object describe_remaps(const View& view) {
  const auto describe_one = [](const upstream::RemapPtr& remap) {
    return upstream::to_json(*remap, json::string(rfc3339(remap->time)));
  };
  return {{"total", view.remaps_total}, {"remaps", describe_all(view.history, describe_one)}};
}

json::object describe_lookup(const View& view, const upstream::Pool& pool,
                             const std::vector<upstream::Question>& wanted,
                             std::uint32_t replicas) {
  upstream::LivePool live{.servers = {}, .panic = pool.health->panic()};
  for (const upstream::Server& server : pool.servers) {
    const upstream::HealthReport health = pool.health->report(*server.health);
    live.servers.push_back({.reachable = !server.endpoints.empty(),
                            .usable = health.standing != upstream::Standing::unusable,
                            .health = health_word(pool, server, health),
                            .in_flight = in_flight(*server.backend)});
  }
  const auto describe_one = [&](const upstream::Question& one) {
    const auto explanation = upstream::explain(pool.config, *pool.ring, one, replicas, live);
    return upstream::to_json(pool.config, one, explanation, live,
                             previous_owner(view, pool, explanation.place));
  };
  return {{"pool", pool.config.name}, {"keys", describe_all(wanted, describe_one)}};
}

ReloadAnswer describe_reload(const ReloadOutcome& outcome) {
  json::array pools = describe_all(
      outcome.pools, [](const upstream::Report& report) { return upstream::to_json(report); });
  if (outcome.result == ReloadResult::applied || outcome.result == ReloadResult::unchanged) {
    const auto not_applied = [](const upstream::NotApplied& one) {
      return json::object{{"path", one.path}, {"reason", one.reason}};
    };
    return {200, json::object{{"result", to_string(outcome.result)},
                              {"trigger", to_string(outcome.trigger)},
                              {"forced", outcome.forced},
                              {"config_digest", outcome.config_digest},
                              {"duration_seconds", outcome.duration_seconds},
                              {"pools", std::move(pools)},
                              {"not_applied", describe_all(outcome.not_applied, not_applied)}}};
  }
  json::array errors = describe_reasons(outcome);
  json::value first = errors.at(0);
  return {409, json::object{{"error", std::move(first)},
                            {"errors", std::move(errors)},
                            {"pools", std::move(pools)}}};
}

ReloadAnswer describe_rollback(const upstream::RollbackResult& result) {
  if (const auto* outcome = std::get_if<ReloadOutcome>(&result)) return describe_reload(*outcome);
  using Why = upstream::NoWayBack::Why;
  const auto& none = std::get<upstream::NoWayBack>(result);
  switch (none.why) {
    case Why::unknown_change:
      return {404, describe_error("not_found", none.message)};
    case Why::not_kept:
      return {409, describe_error("not_kept", none.message)};
    case Why::pool_gone:
      return {409, describe_error("pool_gone", none.message)};
    case Why::from_file:
      break;
  }
  return {409, describe_error("from_file", none.message)};
}

ReloadAnswer describe_server_change(const upstream::ServerChangeResult& result) {
  if (const auto* outcome = std::get_if<ReloadOutcome>(&result)) return describe_reload(*outcome);
  return {404, describe_error("not_found", std::get<upstream::NoSuchServer>(result).message)};
}

json::value quantile(std::span<const std::uint64_t> bounds_ns,
                     std::span<const std::uint64_t> buckets, double q) {
  std::uint64_t total = 0;
  for (const std::uint64_t n : buckets) total += n;
  if (total == 0) return nullptr;
  double left = q * static_cast<double>(total);
  double lower = 0;
  for (std::size_t i = 0; i < bounds_ns.size(); ++i) {
    const double upper = static_cast<double>(bounds_ns[i]) / 1e9;
    const auto here = static_cast<double>(buckets[i]);
    if (here > 0 && left <= here) return lower + (upper - lower) * left / here;
    left -= here;
    lower = upper;
  }
  return lower;
}

}  // namespace clockwise::admin
