#include "admin/collect.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cache/store.h"
#include "unit/admin/world.h"

namespace clockwise::admin {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_world::World;

class MetricsTest : public testing::Test {
 protected:
  std::string page(const std::string& query = "") { return world.get("/metrics" + query).body; }

  // The value of a series as it stands on the page; fails the test when it is not there.
  double value(const std::string& series) {
    std::istringstream lines(page());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(series + " ")) return std::stod(line.substr(series.size()));
    ADD_FAILURE() << series << " is not on the page";
    return -1;
  }

  upstream::Remap remap_of(std::vector<upstream::ServerReport> servers, double moved) {
    upstream::Remap remap;
    remap.cause = "reload";
    remap.time = upstream::WallClock::time_point{std::chrono::seconds{2000}};
    remap.report.pool = "pages";
    remap.report.moved_ratio = moved;
    remap.report.minimum_ratio = moved / 2;
    remap.report.servers = std::move(servers);
    return remap;
  }

  static upstream::ServerReport server_of(const std::string& name, double lost, double gained) {
    upstream::ServerReport server;
    server.name = name;
    server.lost_ratio = lost;
    server.gained_ratio = gained;
    return server;
  }

  World world;
};

TEST_F(MetricsTest, SendsTheExactContentType) {
  EXPECT_EQ(world.get("/metrics").content_type, "text/plain; version=0.0.4; charset=utf-8");
  Request request;
  request.target = "/metrics";
  request.accept = "application/openmetrics-text;version=1.0.0";
  EXPECT_EQ(world.send(request).content_type,
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

TEST_F(MetricsTest, EveryMetricOfTheCatalogueIsOnTheFirstPage) {
  const std::string text = page();
  for (const metrics::Metric& metric : metrics::catalogue()) {
    // Those of what this configuration has not.
    if (metric.name.starts_with("clockwise_memcached_") ||
        metric.name.starts_with("clockwise_cache_shared_"))
      continue;
    EXPECT_THAT(text, HasSubstr("# TYPE " + std::string(metric.name) + " "));
  }
}

TEST_F(MetricsTest, PassesTheLinter) {
  ASSERT_EQ(std::system("command -v promtool >/dev/null 2>&1"), 0) << "Debian package: prometheus";
  const std::string path = testing::TempDir() + "clockwise_metrics_page.txt";
  std::ofstream(path) << page();
  EXPECT_EQ(std::system(("promtool check metrics < " + path).c_str()), 0);
}

TEST_F(MetricsTest, SeriesCountIsTheNumberOfLines) {
  const std::string text = page();
  std::istringstream lines(text);
  int samples = 0;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) ++samples;
  EXPECT_EQ(value("clockwise_metrics_series"), samples);
}

TEST_F(MetricsTest, FixedLabelValuesStartAtZero) {
  for (const char* series :
       {R"(clockwise_backend_requests_total{pool="pages",backend="c",code="error"})",
        R"(clockwise_backend_errors_total{pool="pages",backend="a",reason="protocol"})",
        R"(clockwise_config_reloads_total{trigger="poll",result="refused"})",
        R"(clockwise_remaps_total{pool="pages",cause="ramp"})",
        R"(clockwise_remapped_requests_total{pool="pages",cause="reload"})",
        R"(clockwise_handoff_requests_total{pool="pages",result="skipped"})",
        R"(clockwise_requests_routed_total{pool="pages",reason="failover"})",
        R"(clockwise_remap_last_lost_ratio{pool="pages",backend="b"})",
        R"(clockwise_remap_last_timestamp_seconds{pool="pages"})",
        R"(clockwise_http_request_errors_total{listener="web",reason="no_backend"})",
        R"(clockwise_cache_requests_total{pool="pages",cache="store",result="collapsed"})",
        R"(clockwise_cache_fetches_total{pool="pages",cache="store",reason="prefetch"})",
        R"(clockwise_cache_evictions_total{cache="store",tier="memory",reason="invalidated"})",
        R"(clockwise_cache_admissions_rejected_total{cache="store",tier="memory"})",
        R"(clockwise_cache_purges_total{cache="store",scope="tag",result="error"})",
        R"(clockwise_cache_eviction_age_seconds_bucket{cache="store",le="604800"})",
        R"(clockwise_worker_busy_seconds_total{worker="0"})"})
    EXPECT_EQ(value(series), 0) << series;
}

TEST_F(MetricsTest, WorkersAddToOneValue) {
  auto& cells = world.directory.backend("pages", "a")->cells;
  cells.at(0).requests[0].add(2);
  cells.at(1).requests[0].add(3);
  cells.at(1).duration.observe(2'000'000);
  EXPECT_EQ(value(R"(clockwise_backend_requests_total{pool="pages",backend="a",code="2xx"})"), 5);
  const std::string bucket =
      R"(clockwise_backend_request_duration_seconds_bucket{pool="pages",backend="a",le=)";
  EXPECT_EQ(value(bucket + R"("0.001"})"), 0);
  EXPECT_EQ(value(bucket + R"("0.0025"})"), 1);
  EXPECT_EQ(value(bucket + R"("+Inf"})"), 1);
}

TEST_F(MetricsTest, EveryCellOfAListenerIsShown) {
  auto& cells = world.directory.listener("web")->cells.at(1);
  cells.requests[4].add(1);
  cells.request_errors[7].add(2);
  cells.rejected[3].add(3);
  cells.accepted.add(4);
  cells.received_bytes.add(5);
  cells.sent_bytes.add(6);
  cells.in_flight.add(7);
  cells.connections_active.add(8);
  cells.connections_idle.add(9);
  cells.duration.observe(31'000'000'000);
  const auto of_web = [&](const std::string& metric, const std::string& more = "") {
    return value("clockwise_http_" + metric + "{listener=\"web\"" + more + "}");
  };
  EXPECT_EQ(of_web("requests_total", R"(,code="aborted")"), 1);
  EXPECT_EQ(of_web("request_errors_total", R"(,reason="no_backend")"), 2);
  EXPECT_EQ(of_web("connections_rejected_total", R"(,reason="shutdown")"), 3);
  EXPECT_EQ(of_web("connections_accepted_total"), 4);
  EXPECT_EQ(of_web("received_bytes_total"), 5);
  EXPECT_EQ(of_web("sent_bytes_total"), 6);
  EXPECT_EQ(of_web("requests_in_flight"), 7);
  EXPECT_EQ(of_web("connections", R"(,state="active")"), 8);
  EXPECT_EQ(of_web("connections", R"(,state="idle")"), 9);
  EXPECT_EQ(of_web("request_duration_seconds_sum"), 31);
  EXPECT_EQ(of_web("request_duration_seconds_bucket", R"(,le="30")"), 0);
}

TEST_F(MetricsTest, EveryCellOfAPoolAServerAndAWorkerIsShown) {
  auto& pool = world.directory.pool("pages")->cells.at(0);
  pool.routed[1].add(1);
  pool.retries[4].add(2);
  pool.retries_suppressed[1].add(3);
  pool.hedges[1].add(11);
  auto& server = world.directory.backend("pages", "a")->cells.at(0);
  server.sent_bytes.add(4);
  server.received_bytes.add(5);
  server.connections_opened.add(6);
  server.connections_active.add(7);
  server.connections_idle.add(8);
  server.errors[1].add(9);
  server.waiting.add(12);
  server.queue_rejected[1].add(13);
  world.directory.workers().at(1).busy_ns.add(2'500'000'000);
  world.directory.workers().at(1).log_dropped.add(10);
  world.directory.workers().at(1).loop_delay.observe(2'000'000'000);
  EXPECT_EQ(value(R"(clockwise_requests_routed_total{pool="pages",reason="failover"})"), 1);
  EXPECT_EQ(value(R"(clockwise_retries_total{pool="pages",reason="stale_connection"})"), 2);
  EXPECT_EQ(value(R"(clockwise_retries_suppressed_total{pool="pages",reason="unsafe_method"})"), 3);
  EXPECT_EQ(value(R"(clockwise_backend_sent_bytes_total{pool="pages",backend="a"})"), 4);
  EXPECT_EQ(value(R"(clockwise_backend_received_bytes_total{pool="pages",backend="a"})"), 5);
  EXPECT_EQ(value(R"(clockwise_backend_connections_opened_total{pool="pages",backend="a"})"), 6);
  EXPECT_EQ(value(R"(clockwise_backend_connections{pool="pages",backend="a",state="active"})"), 7);
  EXPECT_EQ(value(R"(clockwise_backend_connections{pool="pages",backend="a",state="idle"})"), 8);
  EXPECT_EQ(value(R"(clockwise_backend_errors_total{pool="pages",backend="a",reason="connect"})"),
            9);
  EXPECT_EQ(value(R"(clockwise_hedges_total{pool="pages",result="lost"})"), 11);
  EXPECT_EQ(value(R"(clockwise_backend_queue{pool="pages",backend="a"})"), 12);
  EXPECT_EQ(
      value(R"(clockwise_backend_queue_rejected_total{pool="pages",backend="a",reason="timeout"})"),
      13);
  EXPECT_EQ(value(R"(clockwise_worker_busy_seconds_total{worker="1"})"), 2.5);
  EXPECT_EQ(value("clockwise_log_messages_dropped_total"), 10);
  EXPECT_EQ(value("clockwise_worker_loop_delay_seconds_count"), 1);
}

TEST_F(MetricsTest, EveryCellOfACacheIsShown) {
  auto& cells = world.directory.cache("pages", "store")->cells.at(1);
  cells.requests[2].add(1);
  cells.fetches[1].add(2);
  cells.revalidations[0].add(3);
  cells.sent_from_store.add(4);
  cells.sent_from_origin.add(5);
  cells.waiting.add(6);
  EXPECT_EQ(
      value(R"(clockwise_cache_requests_total{pool="pages",cache="store",result="revalidated"})"),
      1);
  EXPECT_EQ(
      value(R"(clockwise_cache_fetches_total{pool="pages",cache="store",reason="revalidate"})"), 2);
  EXPECT_EQ(value(R"(clockwise_cache_revalidations_total{cache="store",result="not_modified"})"),
            3);
  EXPECT_EQ(value(R"(clockwise_cache_sent_bytes_total{cache="store",source="store"})"), 4);
  EXPECT_EQ(value(R"(clockwise_cache_sent_bytes_total{cache="store",source="origin"})"), 5);
  EXPECT_EQ(value(R"(clockwise_cache_collapsed_waiting{cache="store"})"), 6);
}

TEST_F(MetricsTest, AStoreShowsWhatItHoldsAndWhatLeft) {
  cache::Store& store = *world.cache->store;
  const double empty = value(R"(clockwise_cache_stored_bytes{cache="store",tier="memory"})");
  for (int i = 0; i < 3; ++i) testing_world::fill(store, "http://h/" + std::to_string(i));
  EXPECT_EQ(value(R"(clockwise_cache_objects{cache="store",tier="memory"})"), 3);
  EXPECT_GT(value(R"(clockwise_cache_stored_bytes{cache="store",tier="memory"})"), empty);
  EXPECT_EQ(value(R"(clockwise_cache_limit_bytes{cache="store",tier="memory"})"), 1 << 20);
  store.invalidate("http://h/0");
  EXPECT_EQ(
      value(R"(clockwise_cache_evictions_total{cache="store",tier="memory",reason="invalidated"})"),
      1);
  // Until the first one has to leave, 59 seconds old.
  int filled = 3;
  while (store.stats().evictions[0] + store.stats().evictions[1] == 0)
    testing_world::fill(store, "http://h/" + std::to_string(filled++), {}, 59'000);
  EXPECT_EQ(value(R"(clockwise_cache_eviction_age_seconds_bucket{cache="store",le="10"})"), 0);
  EXPECT_EQ(value(R"(clockwise_cache_eviction_age_seconds_bucket{cache="store",le="60"})"), 1);
  EXPECT_EQ(value(R"(clockwise_cache_eviction_age_seconds_sum{cache="store"})"), 59);
}

TEST_F(MetricsTest, AnAnswerWithoutRoomIsCounted) {
  cache::Store& store = *world.cache->store;
  cache::Draft draft;
  draft.length = 60'000;
  // What is being fetched cannot leave.
  std::vector<std::shared_ptr<cache::Fill>> fills;
  do {
    const std::string key = std::to_string(fills.size());
    fills.push_back(store.join({store.hash(key), key, {}, {}}, {}, false, 0).fill);
  } while (store.begin(*fills.back(), draft, 0));
  EXPECT_GT(fills.size(), 10U);
  EXPECT_EQ(value(R"(clockwise_cache_admissions_rejected_total{cache="store",tier="memory"})"), 1);
  for (const auto& fill : fills) store.cut(*fill);
}

TEST_F(MetricsTest, PurgesAreCountedByScopeAndResult) {
  for (const char* body : {R"({"all": true})", R"({"all": true})", R"({"all": 1})",
                           R"({"tag": "a b"})", R"({"what": "x"})"})
    world.post("/api/v1/caches/store/purge", body);
  world.busy = true;
  world.post("/api/v1/caches/store/purge", R"({"host": "h"})");
  EXPECT_EQ(value(R"(clockwise_cache_purges_total{cache="store",scope="all",result="ok"})"), 2);
  EXPECT_EQ(value(R"(clockwise_cache_purges_total{cache="store",scope="all",result="error"})"), 1);
  EXPECT_EQ(value(R"(clockwise_cache_purges_total{cache="store",scope="tag",result="error"})"), 1);
  EXPECT_EQ(value(R"(clockwise_cache_purges_total{cache="store",scope="host",result="error"})"), 1);
}

TEST_F(MetricsTest, ARemovedCacheKeepsItsCountersForTheGrace) {
  auto& cells = world.directory.cache("pages", "store")->cells.at(0);
  cells.requests[0].add(7);
  cells.sent_from_store.add(8);
  cells.waiting.add();
  world.post("/api/v1/caches/store/purge", R"({"all": true})");
  world.cache = nullptr;
  world.publish({"a"});
  EXPECT_EQ(value(R"(clockwise_cache_requests_total{pool="pages",cache="store",result="hit"})"), 7);
  EXPECT_EQ(value(R"(clockwise_cache_sent_bytes_total{cache="store",source="store"})"), 8);
  EXPECT_EQ(value(R"(clockwise_cache_purges_total{cache="store",scope="all",result="ok"})"), 1);
  EXPECT_EQ(value(R"(clockwise_cache_collapsed_waiting{cache="store"})"), 1);
  for (const char* gauge : {"stored_bytes", "limit_bytes", "objects"})
    EXPECT_THAT(page(), Not(HasSubstr(std::string("clockwise_cache_") + gauge + "{")));
  cells.waiting.sub();
  EXPECT_THAT(page(), Not(HasSubstr("clockwise_cache_collapsed_waiting{")));
  world.now += std::chrono::minutes{11};
  EXPECT_THAT(page(), Not(HasSubstr("cache=")));
}

TEST_F(MetricsTest, ResolveErrorsOfTheControlThreadCount) {
  world.directory.backend("pages", "a")->resolve_errors = 4;
  EXPECT_EQ(value(R"(clockwise_backend_errors_total{pool="pages",backend="a",reason="resolve"})"),
            4);
}

TEST_F(MetricsTest, BackendsByState) {
  std::vector<config::Server> servers(4);
  const char* names[]{"a", "b", "c", "d"};
  for (std::size_t i = 0; i < servers.size(); ++i) servers[i].name = names[i];
  servers[1].state = config::ServerState::draining;
  servers[2].state = config::ServerState::down;
  servers[3].weight = 2.5;
  world.publish_servers(servers);
  const auto state = [&](const std::string& name) {
    return value("clockwise_ring_backends{pool=\"pages\",state=\"" + name + "\"}");
  };
  EXPECT_EQ(state("configured"), 4);
  EXPECT_EQ(state("usable"), 2);
  EXPECT_EQ(state("draining"), 1);
  EXPECT_EQ(state("down"), 1);
  EXPECT_EQ(state("ramping"), 0);
  EXPECT_EQ(value(R"(clockwise_backend_up{pool="pages",backend="b"})"), 0);
  EXPECT_EQ(value(R"(clockwise_backend_draining{pool="pages",backend="b"})"), 1);
  EXPECT_EQ(value(R"(clockwise_ring_share_ratio{pool="pages",backend="c"})"), 0);
  EXPECT_EQ(value(R"(clockwise_backend_weight{pool="pages",backend="d"})"), 2.5);
}

TEST_F(MetricsTest, RemovedServerKeepsItsCountersForTheGrace) {
  world.directory.backend("pages", "c")->cells.at(0).requests[0].add(9);
  world.publish({"a", "b"});
  EXPECT_EQ(value(R"(clockwise_backend_requests_total{pool="pages",backend="c",code="2xx"})"), 9);
  for (const char* gauge : {"backend_up", "ring_share_ratio", "backend_weight", "backend_draining",
                            "backend_requests_in_flight"})
    EXPECT_THAT(page(),
                Not(HasSubstr(std::string("clockwise_") + gauge + R"({pool="pages",backend="c")")));
  world.now += std::chrono::minutes{11};
  EXPECT_THAT(page(), Not(HasSubstr(R"(backend="c")")));
}

TEST_F(MetricsTest, RemovedServerShowsItsLoadWhileItIsBusy) {
  world.directory.backend("pages", "c")->cells.at(0).in_flight.add(1);
  world.publish({"a", "b"});
  EXPECT_EQ(value(R"(clockwise_backend_requests_in_flight{pool="pages",backend="c"})"), 1);
}

TEST_F(MetricsTest, LastRemapByServerAddsUpToWhatMoved) {
  world.publish({"a", "b", "d"});
  world.directory.record_remap(
      remap_of({server_of("a", 0, 0.1), server_of("b", 0, 0.2), server_of("c", 0.3, 0)}, 0.3));
  EXPECT_EQ(value(R"(clockwise_remap_last_moved_ratio{pool="pages"})"), 0.3);
  EXPECT_EQ(value(R"(clockwise_remap_last_minimum_ratio{pool="pages"})"), 0.15);
  EXPECT_EQ(value(R"(clockwise_remap_last_lost_ratio{pool="pages",backend="c"})"), 0.3);
  EXPECT_EQ(value(R"(clockwise_remap_last_gained_ratio{pool="pages",backend="b"})"), 0.2);
  EXPECT_EQ(value(R"(clockwise_remap_last_gained_ratio{pool="pages",backend="d"})"), 0);
  EXPECT_EQ(value(R"(clockwise_remap_last_timestamp_seconds{pool="pages"})"), 2000);
  EXPECT_EQ(value(R"(clockwise_remaps_total{pool="pages",cause="reload"})"), 1);
  EXPECT_EQ(value(R"(clockwise_remap_keyspace_moved_total{pool="pages",cause="reload"})"), 0.3);
}

TEST_F(MetricsTest, HandoffIsActiveUntilItsTime) {
  auto watch = std::make_shared<upstream::RemapWatch>(2);
  watch->until = world.now + std::chrono::minutes{1};
  std::vector<config::Server> servers(1);
  servers[0].name = "a";
  world.publish_servers(servers, watch);
  EXPECT_EQ(value(R"(clockwise_handoff_active{pool="pages"})"), 1);
  world.now += std::chrono::minutes{1};
  EXPECT_EQ(value(R"(clockwise_handoff_active{pool="pages"})"), 0);
}

TEST_F(MetricsTest, ReloadsAreCountedAndTimed) {
  upstream::ReloadOutcome outcome;
  outcome.result = upstream::ReloadResult::applied;
  outcome.trigger = upstream::Trigger::signal;
  outcome.duration_seconds = 0.25;
  outcome.time = upstream::WallClock::time_point{std::chrono::seconds{3000}};
  world.directory.record_reload(outcome);
  world.directory.record_ring_build("pages", 0.002);
  EXPECT_EQ(value(R"(clockwise_config_reloads_total{trigger="signal",result="applied"})"), 1);
  EXPECT_EQ(value("clockwise_config_last_reload_successful"), 1);
  EXPECT_EQ(value("clockwise_config_last_reload_success_timestamp_seconds"), 3000);
  EXPECT_EQ(value("clockwise_config_reload_duration_seconds_sum"), 0.25);
  EXPECT_EQ(value("clockwise_config_reload_duration_seconds_count"), 1);
  EXPECT_EQ(value(R"(clockwise_ring_build_duration_seconds_bucket{pool="pages",le="0.005"})"), 1);
}

TEST_F(MetricsTest, PoolAndNameCanBeChosen) {
  EXPECT_THAT(page("?pool=none"), Not(HasSubstr("clockwise_ring_info")));
  const std::string text = page("?pool=pages&name=clockwise_ring_info,clockwise_remaps_total");
  EXPECT_THAT(
      text,
      HasSubstr(
          R"(clockwise_ring_info{pool="pages",digest="0123456789abcdef",placement="clockwise"} 1)"));
  EXPECT_THAT(text, Not(HasSubstr("process_")));
}

TEST_F(MetricsTest, DetailOfServersCanBeTurnedDown) {
  world.config.metrics.per_backend = config::PerBackend::basic;
  world.publish({"a"});
  EXPECT_THAT(page(), Not(HasSubstr("clockwise_backend_request_duration_seconds")));
  EXPECT_THAT(page(), HasSubstr("clockwise_backend_requests_total"));
  world.config.metrics.per_backend = config::PerBackend::off;
  world.publish({"b"});
  EXPECT_THAT(page(), Not(HasSubstr("backend=")));
  EXPECT_TRUE(world.warnings.empty());
}

TEST_F(MetricsTest, ManyServersLoseTheirHistogramAndTheLogSaysSoOnce) {
  std::vector<std::string> names;
  for (int i = 0; i < 501; ++i) names.push_back("s" + std::to_string(i));
  world.publish(names);
  page();
  EXPECT_THAT(page(), Not(HasSubstr("clockwise_backend_request_duration_seconds")));
  EXPECT_EQ(world.warnings.size(), 1U);
}

TEST_F(MetricsTest, SeriesBeyondTheLimitAreCountedAndOthersGoOn) {
  const double before = value("clockwise_metrics_series");
  world.config.metrics.max_series = static_cast<std::uint32_t>(before);
  world.publish({"a", "b", "c", "d"});
  EXPECT_GT(value("clockwise_metrics_series_suppressed_total"), 20);
  EXPECT_LE(value("clockwise_metrics_series"), before + 3) << "the page's own three are free";
  EXPECT_EQ(value(R"(clockwise_backend_up{pool="pages",backend="c"})"), 1);
}

TEST_F(MetricsTest, ProcessFiguresAreRead) {
  EXPECT_EQ(value("process_start_time_seconds"), 1000);
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value("process_open_fds"), 2);
  EXPECT_GT(value("process_max_fds"), value("process_open_fds"));
}

TEST(MetricsBeforeStart, ThePageStillParses) {
  upstream::Directory directory(1, upstream::WallClock::time_point{});
  Api api(directory, {}, {});
  Request request;
  request.target = "/metrics";
  std::string body;
  api.handle(request, [&](Response response) { body = std::move(response.body); });
  EXPECT_THAT(body, HasSubstr("clockwise_build_info"));
  EXPECT_THAT(body, HasSubstr("clockwise_config_last_reload_successful 0"));
}

}  // namespace
}  // namespace clockwise::admin
