// A whole configuration: what a good one becomes, what else load() tells.
#include "config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/print.h"
#include "support/configs.h"

namespace clockwise::config {
namespace {

using test::Files;
using test::kMain;
using test::kSmall;
using test::load_from;
using test::loaded;
using test::problems;
using test::problems_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// kSmall as structs: all the rest has its default.
Config small_config() {
  Config config;
  config.workers = loaded(kSmall).config.workers;
  Listener web;
  web.name = "web";
  web.address = {"0.0.0.0:8080", "0.0.0.0", 8080, ""};
  web.pool = "pages";
  config.listeners = {web};
  Server server;
  server.name = "cache-1";
  server.address = {"10.0.0.11:8080", "10.0.0.11", 8080, ""};
  Pool pool;
  pool.name = "pages";
  pool.servers = {server};
  config.pools = {pool};
  return config;
}

TEST(Load, ASmallFileHasTheDefaults) {
  const Loaded result = loaded(kSmall);
  EXPECT_EQ(result.config, small_config());
  EXPECT_GE(result.config.workers, 1U);
  EXPECT_THAT(result.warnings, IsEmpty());
  EXPECT_THAT(result.files, ElementsAre(kMain));
}

TEST(Load, TheFileWithEveryOptionIsExactlyTheDefaults) {
  const std::string path = std::string(CLOCKWISE_SOURCE_DIR) + "/config/every-option.yaml";
  const Loaded result = test::expect_loaded(load(path, real_files(), test::environment({})));
  EXPECT_EQ(result.config, small_config());
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(Load, TheCacheInTheCommentsOfThatFileIsTheDefaultToo) {
  std::ifstream file(std::string(CLOCKWISE_SOURCE_DIR) + "/config/every-option.yaml");
  std::string text;
  for (std::string line; std::getline(file, line);)
    if (line == "# caches:" || (!text.empty() && line.starts_with("# ")))
      text += line.substr(2) + "\n";
  Cache cache;
  cache.name = "pages-cache";
  EXPECT_THAT(loaded(kSmall + text).config.caches, ElementsAre(cache));
}

TEST(Load, TheShippedExampleLoads) {
  const std::string folder = std::string(CLOCKWISE_SOURCE_DIR) + "/config/";
  const Loaded result =
      test::expect_loaded(load(folder + "clockwise.yaml", real_files(), test::environment({})));
  EXPECT_THAT(result.files, ElementsAre(folder + "clockwise.yaml", folder + "upstreams.yaml"));
  ASSERT_EQ(result.config.pools.size(), 1U);
  EXPECT_EQ(result.config.pools[0].servers.size(), 4U);
  EXPECT_EQ(result.config.pools[0].servers[3].name, "cache-4");
}

TEST(Load, EverySettingArrives) {
  const Config config = loaded(R"(
workers: 3
shutdown_timeout: 1m
user: www:web
overload: {memory: 64m}
admin: {address: "[::1]:9000", token: secret}
listeners:
  - name: web
    address: "unix:/run/web.sock"
    pool: b
    limits:
      {max_connections: 10, per_client: 2, requests: 3, pipelined: 4, header_size: 16KiB,
       uri_size: 8k, headers: 50, body_size: 1g}
    timeouts: {first_byte: 500ms, header: 1s, body: 2s, idle: 3s, write: 4s, request: 5s}
    forwarded: {trust: [10.0.0.0/8, "::1"], by: forwarded}
    routes:
      - {match: {host: IMG.example.com., path_prefix: /thumb/}, pool: a}
      - {match: {host: "*.Example.com"}, pool: b, cache: y}
      - {match: {path_prefix: /raw/}, pool: b, cache: off}
    debug_headers: on
pools:
  b:
    ring: {points: 160, key: "{host}{uri:normalized}", key_ignore: ["utm_*", sid]}
    servers:
      - {name: x, address: h:1, weight: 2.5, zone: z, state: draining, label: old}
      - {name: y, address: h:2, state: down}
      - {name: z, address: h:3}
    handoff: {max_window: 5m}
    max_remap: 0.25
    max_shrink: 75%
    retry: {attempts: 0, on: [timeout, "503"], budget: 5%}
    timeouts: {connect: 5ms, response: 6s, idle: 7s, total: 8s}
    resolve: lazy
    connections: {max_idle: 8, max: 9, queue: 10, queue_timeout: 11s}
    health:
      {path: /up, method: HEAD, host: h, port: 81, interval: 3s, jitter: 20%, timeout: 2s, rise: 4,
       fall: 5, status: [200, 204-206]}
    outlier:
      {consecutive_failures: 6, success_gap: 10%, min_requests: 7, interval: 8s, eject: 9s,
       max_eject: 10s, max_ejected: 30%}
    panic: 40%
    failover: fail_fast
    hedge: {after: p90, budget: 3%}
    cache: z
  a: {servers: [{name: s, address: h:1}]}
caches:
  z:
    store: memory
    size: 2g
    max_object: 1m
    default_ttl: 1s
    negative_ttl: 2s
    heuristic: off
    ttl_jitter: 10%
    refresh_ahead: 5%
    stale_while_revalidate: 3s
    stale_if_error: 4s
    stale_after: 500ms
    coalesce: off
    coalesce_timeout: 5s
    coalesce_waiters: 6
    hit_for_miss: 0s
    finish_fill: 100%
    set_cookie: strip
    request_cache_control: honour
    targeted: [X-CDN, CDN-Cache-Control]
    surrogate_control: on
    key: "{host}{uri:normalized}"
    key_ignore: ["utm_*", sid]
    vary_limit: 7
    show_key: on
  y: {refresh_ahead: 0.5, heuristic: 20%, targeted: []}
access_log: {file: /var/log/a.log, format: combined, sample: 10%}
metrics: {per_backend: basic, removed_grace: 0s, max_series: 2000}
)")
                            .config;
  using namespace std::chrono_literals;
  EXPECT_EQ(config.workers, 3U);
  EXPECT_EQ(config.shutdown_timeout, 60s);
  EXPECT_EQ(config.user, "www:web");
  EXPECT_EQ(config.overload, (Overload{Overload::Memory::fixed, 64 << 20}));
  EXPECT_EQ(config.admin, (Admin{{"[::1]:9000", "::1", 9000, ""}, "secret"}));
  const Listener& web = config.listeners.at(0);
  EXPECT_EQ(web.limits, (Limits{10, 2, 3, 4, 16'384, 8'192, 50, 1ULL << 30}));
  EXPECT_EQ(web.timeouts, (ListenerTimeouts{500ms, 1s, 2s, 3s, 4s, 5s}));
  EXPECT_EQ(web.forwarded, (Forwarded{{{"10.0.0.0/8"}, {"::1/128"}}, ForwardedStyle::forwarded}));
  EXPECT_TRUE(web.debug_headers);
  EXPECT_THAT(web.routes, ElementsAre(Route{"img.example.com", "/thumb/", "", "a", std::nullopt},
                                      Route{"*.example.com", "", "", "b", "y"},
                                      Route{"", "/raw/", "", "b", ""}));
  ASSERT_EQ(config.pools.size(), 2U);
  EXPECT_EQ(config.pools[0].name, "a");  // sorted
  const Pool& b = config.pools[1];
  Ring ring;
  ring.scheme.points = 160;
  ring.key = "{host}{uri:normalized}";
  ring.key_ignore = {"sid", "utm_*"};
  EXPECT_EQ(b.ring, ring);
  EXPECT_EQ(b.servers.at(0),
            (Server{"x", {"h:1", "h", 1, ""}, 2.5, "z", ServerState::draining, "old", 0}));
  EXPECT_EQ(b.servers.at(1).state, ServerState::down);
  EXPECT_EQ(b.handoff.max_window, 5min);
  EXPECT_EQ(b.max_remap, 0.25);
  EXPECT_EQ(b.max_shrink, 0.75);
  EXPECT_EQ(b.retry,
            (Retry{0, {.connect = false, .reset = false, .timeout = true, .s503 = true}, 0.05}));
  EXPECT_EQ(b.timeouts, (PoolTimeouts{5ms, 6s, 7s, 8s}));
  EXPECT_EQ(b.resolve, Resolve::lazy);
  EXPECT_EQ(b.connections, (Connections{8, 9, 10, 11s}));
  EXPECT_EQ(b.health,
            (Health{"/up", "HEAD", "h", 81, 3s, 0.2, 2s, 4, 5, {{200, 200}, {204, 206}}, ""}));
  EXPECT_EQ(b.outlier, (Outlier{6, 0.1, 7, 8s, 9s, 10s, 0.3}));
  EXPECT_EQ(b.panic, 0.4);
  EXPECT_EQ(b.failover, Failover::fail_fast);
  EXPECT_EQ(b.hedge, (Hedge{0.9, 0ms, 0.03}));
  EXPECT_EQ(b.cache, "z");
  EXPECT_EQ(config.pools[0].cache, std::nullopt);
  Cache y;
  y.name = "y";
  y.refresh_ahead = 0.5;
  y.heuristic = 0.2;
  y.targeted.clear();
  const Cache z{.name = "z",
                .pool = std::nullopt,
                .size = 2ULL << 30,
                .max_object = 1ULL << 20,
                .default_ttl = 1s,
                .negative_ttl = 2s,
                .heuristic = std::nullopt,
                .ttl_jitter = 0.1,
                .refresh_ahead = 0.05,
                .stale_while_revalidate = 3s,
                .stale_if_error = 4s,
                .stale_after = 500ms,
                .coalesce = false,
                .coalesce_timeout = 5s,
                .coalesce_waiters = 6,
                .hit_for_miss = 0ms,
                .finish_fill = 1,
                .set_cookie = Cache::SetCookie::strip,
                .honour_requests = true,
                .targeted = {"X-CDN", "CDN-Cache-Control"},
                .surrogate_control = true,
                .key = "{host}{uri:normalized}",
                .key_ignore = {"sid", "utm_*"},
                .vary_limit = 7,
                .show_key = true};
  EXPECT_THAT(config.caches, ElementsAre(y, z));
  EXPECT_EQ(config.cache("z"), &config.caches[1]);
  EXPECT_EQ(config.cache("x"), nullptr);
  EXPECT_EQ(config.access_log, (AccessLog{"/var/log/a.log", LogFormat::combined, 0.1}));
  EXPECT_EQ(config.metrics, (Metrics{PerBackend::basic, 0ms, 2000}));
}

constexpr const char* kMemcached = R"(
listeners:
  - {name: mc, address: h:1, protocol: memcached, pool: mc}
  - {name: web, address: h:2, pool: mc}
pools:
  mc: {protocol: memcached, servers: [{name: h:1, address: h:1}]}
)";

TEST(Load, AMemcachedPoolHasDefaultsOfItsOwn) {
  using namespace std::chrono_literals;
  const Loaded result = loaded(kMemcached);
  EXPECT_THAT(result.warnings, IsEmpty());
  Pool pool;
  pool.name = "mc";
  pool.protocol = Protocol::memcached;
  pool.ring.scheme.placement = ring::Placement::ketama;
  pool.ring.scheme.hash = "md5";
  pool.ring.key = "{path:decoded}?{query}";
  Server server;
  server.name = "h:1";
  server.address = {"h:1", "h", 1, ""};
  pool.servers = {server};
  pool.failover = Failover::fail_fast;
  pool.timeouts = {250ms, 1s, 5min, 0ms};
  EXPECT_THAT(result.config.pools, ElementsAre(pool));
  EXPECT_EQ(result.config.listeners.at(0).protocol, Protocol::memcached);
  EXPECT_EQ(result.config.listeners.at(0).timeouts.idle, 0ms);
  EXPECT_EQ(result.config.listeners.at(1).protocol, Protocol::http);
  EXPECT_EQ(result.config.listeners.at(1).timeouts.idle, 60s);
}

TEST(Load, TheMemcachedPartOfTheFileWithEveryOptionIsTheDefaultsToo) {
  std::ifstream file(std::string(CLOCKWISE_SOURCE_DIR) + "/config/every-option.yaml");
  std::string text = kMemcached;
  text.replace(text.find("  mc: {"), std::string::npos,
               "  mc:\n    servers: [{name: h:1, address: h:1}]\n    protocol: memcached\n");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = inside ? line.starts_with("    # ") : line == "    # memcached:";
    if (inside) text += "    " + line.substr(6) + "\n";
  }
  EXPECT_THAT(text, HasSubstr("    memcached:\n      key: "));
  EXPECT_EQ(loaded(text).config.pools, loaded(kMemcached).config.pools);
}

TEST(Load, EverySettingOfMemcachedArrives) {
  using namespace std::chrono_literals;
  const Config config = loaded(R"(
listeners:
  - name: mc
    address: h:1
    protocol: memcached
    pool: mc
    routes: [{match: {key_prefix: "s:"}, pool: sessions}]
    limits: {max_connections: 1, per_client: 2, unanswered: 3k, unsent: 4k, buffered: 5m, gather: 6%}
    timeouts: {body: 6s, idle: 7s, write: 8s}
pools:
  web: {servers: [{name: a, address: h:1}], cache: c}
  sessions: {protocol: memcached, servers: [{name: h:1, address: h:1}]}
  mc:
    protocol: memcached
    ring: {scheme: twemproxy, replicas: 3}
    servers: [{name: h:1, address: h:1, weight: 0}]
    health: {interval: 9s}
    outlier: {consecutive_failures: 10}
    failover: next
    timeouts: {connect: 1ms, response: 2ms, idle: 3ms, total: 4ms}
    fallback: web
    memcached:
      key: "{host}{uri}"
      long_key: reject
      layout: http
      gzip_flag: 8
      etag: off
      default_type: text/html; charset=utf-8
      types: {HTML: text/html, css: text/css}
      writable: true
      ttl: 1s
      max_ttl: 2s
      fill: true
      negative_ttl: 3s
      budget: 4ms
      on_read_error: error
      failover_ttl: 5s
      allow_flush: true
      namespace: "app:"
      server_connections: 6
      down_after: 7
      retry_interval: 80ms
      on_return: distrust
caches:
  c: {store: memcached, pool: mc, namespace: site, pool_budget: 9ms}
)")
                            .config;
  const Listener& listener = config.listeners.at(0);
  Limits limits;
  limits.max_connections = 1;
  limits.per_client = 2;
  limits.unanswered = 3 << 10;
  limits.unsent = 4 << 10;
  limits.buffered = 5 << 20;
  limits.gather = 0.06;
  EXPECT_EQ(listener.limits, limits);
  EXPECT_EQ(listener.timeouts, (ListenerTimeouts{std::nullopt, 10s, 6s, 7s, 8s, 0ms}));
  EXPECT_THAT(listener.routes, ElementsAre(Route{"", "", "s:", "sessions", std::nullopt}));
  const Pool& mc = *config.pool("mc");
  EXPECT_EQ(mc.ring.scheme.placement, ring::Placement::twemproxy);
  EXPECT_EQ(mc.ring.key, "{host}{uri}");
  EXPECT_EQ(mc.ring.replicas, 3U);
  EXPECT_EQ(mc.ring.scheme.key_namespace, "app:");
  EXPECT_EQ(mc.health->interval, 9s);
  EXPECT_EQ(mc.outlier->consecutive_failures, 10U);
  EXPECT_EQ(mc.failover, Failover::next);
  EXPECT_EQ(mc.timeouts, (PoolTimeouts{1ms, 2ms, 3ms, 4ms}));
  EXPECT_EQ(mc.fallback, "web");
  EXPECT_EQ(mc.memcached, (Memcached{.long_key = Memcached::LongKey::reject,
                                     .layout = Memcached::Layout::http,
                                     .gzip_flag = 8,
                                     .etag = false,
                                     .default_type = "text/html; charset=utf-8",
                                     .types = {{"css", "text/css"}, {"html", "text/html"}},
                                     .writable = true,
                                     .ttl = 1s,
                                     .max_ttl = 2s,
                                     .fill = true,
                                     .negative_ttl = 3s,
                                     .budget = 4ms,
                                     .error_on_read = true,
                                     .allow_flush = true,
                                     .server_connections = 6,
                                     .down_after = 7,
                                     .retry_interval = 80ms,
                                     .failover_ttl = 5s,
                                     .on_return = Memcached::OnReturn::distrust}));
  const Cache& cache = config.caches.at(0);
  EXPECT_EQ(cache.pool, "mc");
  EXPECT_EQ(cache.pool_namespace, "site");
  EXPECT_EQ(cache.pool_budget, 9ms);
}

TEST(Load, AllServersMayBeWithoutAKeyWhereThereIsAFallback) {
  Files files = {{"main.yaml",
                  "listeners: [{name: web, address: 'h:80', pool: mc}]\n"
                  "pools:\n  web: {servers: [{name: a, address: 'h:1'}]}\n"
                  "  mc: {protocol: memcached, fallback: web, servers_from: {file: up.yaml}}\n"},
                 {"up.yaml", "servers: [{name: 'h:2', address: 'h:2', weight: 0}]\n"}};
  const Loaded result = loaded(files, "main.yaml");
  EXPECT_THAT(result.warnings, IsEmpty());
  const Pool& mc = *result.config.pool("mc");
  EXPECT_EQ(load_servers("up.yaml", files["up.yaml"], mc, test::environment({})).index(), 0U);
  files["main.yaml"].replace(files["main.yaml"].find("fallback: web"), 13, "fallback: off");
  EXPECT_THAT(problems(load_from(files)), ElementsAre(HasSubstr("the weights are all 0")));
}

TEST(Load, TheIgnoredParametersAreTheSetThatTheKeyLeavesOut) {
  const auto ignored = [](const std::string& ring) {
    return loaded(
               "listeners: [{name: web, address: '127.0.0.1:1', pool: p}]\n"
               "pools: {p: {servers: [{name: a, address: 'h:1'}], ring: {" +
               ring + "}}}\n")
        .config.pools[0]
        .ring.key_ignore;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(ignored("key: '{uri:normalized}', key_ignore: ['utm_*', sid, 'utm_*']"),
            (Names{"sid", "utm_*"}));
  EXPECT_EQ(ignored("key_ignore: [sid], key: '{host}{uri:normalized}'"), Names{"sid"});
  EXPECT_EQ(ignored("key: '{path}', key_ignore: [sid]"), Names{});
  EXPECT_EQ(ignored("key_ignore: [sid]"), Names{});
}

TEST(Load, AnObjectIsAtMostAQuarterOfItsCache) {
  const auto cache = [](const std::string& sizes) {
    return loaded(std::string(kSmall) + "caches: {c: {" + sizes + "}}\n").config.caches.at(0);
  };
  EXPECT_EQ(cache("size: 32m").max_object, 8U << 20);
  EXPECT_EQ(cache("size: 16m").max_object, 4U << 20);  // as nobody asked for more
  EXPECT_EQ(cache("max_object: 4m, size: 16m").max_object, 4U << 20);
  EXPECT_EQ(cache("max_object: 128m").max_object, 128U << 20);
  EXPECT_THAT(problems_of(std::string(kSmall) + "caches: {c: {max_object: 5m, size: 16m}}\n"),
              ElementsAre("7:26: caches.c.max_object: \"5m\" is more than a quarter of the size, "
                          "16MiB; at most 4MiB would fit"));
}

TEST(Load, OffIsAWordThatStaysOne) {
  const std::string text = kSmall;
  EXPECT_EQ(loaded(text + "access_log: off\n").config.access_log, std::nullopt);
  EXPECT_EQ(loaded(text + "access_log: false\n").config.access_log, std::nullopt);
  EXPECT_EQ(loaded(text + "access_log: \"off\"\n").config.access_log, std::nullopt);
  EXPECT_THAT(problems_of(text + "access_log: no\n"),
              ElementsAre(HasSubstr("\"no\" is not a map")));
  EXPECT_EQ(loaded(text + "metrics: {per_backend: off}\n").config.metrics.per_backend,
            PerBackend::off);
}

Files with_upstreams(std::string upstreams) {
  return {{"etc/main.yaml",
           "listeners: [{name: web, address: '[::]:80', pool: pages}]\n"
           "pools: {pages: {servers_from: {file: sub/up.yaml}}}\n"},
          {"etc/sub/up.yaml", std::move(upstreams)}};
}

TEST(UpstreamFile, IsFoundBesideTheMainFile) {
  const Loaded result =
      loaded(with_upstreams("servers: [{name: a, address: 'unix:/run/a.sock', weight: 0.5}]\n"),
             "etc/main.yaml");
  EXPECT_THAT(result.files, ElementsAre("etc/main.yaml", "etc/sub/up.yaml"));
  EXPECT_EQ(result.config.pools.at(0).servers_file, "etc/sub/up.yaml");
  EXPECT_EQ(result.config.pools[0].servers.at(0).address.path, "/run/a.sock");
}

TEST(UpstreamFile, ItsProblemsCarryItsPathAndComeAfterThoseOfTheMainFile) {
  Files files = with_upstreams("server: []\nservers:\n  - {name: a, address: h:1, weight: no}\n");
  files["etc/main.yaml"] += "workers: 0\n";
  EXPECT_THAT(problems(load_from(files, "etc/main.yaml")),
              ElementsAre(StartsWith("etc/main.yaml:3:10: workers:"),
                          StartsWith("etc/sub/up.yaml:1:1: server: unknown key"),
                          StartsWith("etc/sub/up.yaml:3:37: servers[0].weight: \"no\" is not")));
}

TEST(UpstreamFile, OneThatCannotBeReadIsUnreadable) {
  Files files = with_upstreams("");
  files.erase("etc/sub/up.yaml");
  const LoadResult result = load_from(files, "etc/main.yaml");
  ASSERT_EQ(result.index(), 1U);
  EXPECT_EQ(std::get<Failure>(result).code, FailureCode::unreadable);
  EXPECT_THAT(problems(result),
              ElementsAre("etc/main.yaml:2:38: pools.pages.servers_from.file: \"etc/sub/up.yaml\" "
                          "cannot be read: no such file or directory"));
}

TEST(UpstreamFile, OfTwoPoolsIsReadOnceAndItsProblemsAreToldOnce) {
  Files files = with_upstreams("servers: [{name: a, address: h:1}]\n");
  files["etc/main.yaml"] =
      "listeners: [{name: web, address: 'h:80', pool: p}]\n"
      "pools: {p: {servers_from: {file: sub/up.yaml}}, q: {servers_from: {file: sub/up.yaml}}}\n";
  EXPECT_EQ(loaded(files, "etc/main.yaml").files.size(), 2U);
  files["etc/sub/up.yaml"] = "servers: []\n";
  EXPECT_EQ(problems(load_from(files, "etc/main.yaml")).size(), 1U);
}

TEST(UpstreamFile, TooManyPointsAreReportedWherePointsAreWritten) {
  Files files = with_upstreams("servers: [{name: a, address: h:1, weight: 100}]\n");
  files["etc/main.yaml"] =
      "listeners: [{name: web, address: 'h:80', pool: p}]\n"
      "pools: {p: {ring: {points: 50000}, servers_from: {file: sub/up.yaml}}}\n";
  EXPECT_THAT(
      problems(load_from(files, "etc/main.yaml")),
      ElementsAre(AllOf(
          StartsWith("etc/main.yaml:2:28: pools.p.ring.points: the servers have 5000000 points"),
          HasSubstr("`points: 40000` would fit"))));
}

TEST(LoadServers, ReadsABareList) {
  const Pool pool;
  const auto result =
      load_servers("new.yaml", "servers: [{name: a, address: h:1}]", pool, test::environment({}));
  ASSERT_EQ(result.index(), 0U);
  EXPECT_EQ(std::get<0>(result).at(0).name, "a");
  const auto bad = load_servers("new.yaml", "servers: [{name: a}]", pool, test::environment({}));
  EXPECT_EQ(std::get<1>(bad).problems.at(0).headline(),
            "new.yaml:1:12: servers[0]: the key \"address\" is missing");
}

TEST(IsFullConfiguration, TellsItFromABareList) {
  EXPECT_TRUE(is_full_configuration(kSmall));
  EXPECT_TRUE(is_full_configuration("{\"pools\": {}}"));
  EXPECT_TRUE(is_full_configuration("workers: [\npools:\n"));  // broken, but meant as one
  EXPECT_FALSE(is_full_configuration("servers: []"));
  EXPECT_FALSE(is_full_configuration("servers: ["));
  EXPECT_FALSE(is_full_configuration(""));
  EXPECT_FALSE(is_full_configuration("pools"));
}

TEST(Digest, IsSha256OverTheMainAndTheUpstreamFiles) {
  // cat etc/main.yaml etc/sub/up.yaml | sha256sum | cut -c1-12
  const Files files = with_upstreams("servers: [{name: a, address: h:1}]\n");
  const Loaded result = loaded(files, "etc/main.yaml");
  EXPECT_EQ(result.digest, "b33aba0c2f82");
}

TEST(Environment, IsTakenInScalars) {
  const std::string text =
      std::string(kSmall) +
      "workers: ${N}\n"
      "admin: {token: \"${TOKEN:-}\", address: \"${HOST:-127.0.0.1}:${PORT}\"}\n";
  const Config config = loaded(text, {{"N", "2"}, {"PORT", "1234"}}).config;
  EXPECT_EQ(config.workers, 2U);
  EXPECT_EQ(config.admin.token, "");
  EXPECT_EQ(config.admin.address.text, "127.0.0.1:1234");
}

TEST(Environment, AnEmptyVariableTakesTheDefault) {
  const std::string text = std::string(kSmall) + "workers: ${N:-3}\n";
  EXPECT_EQ(loaded(text, {{"N", ""}}).config.workers, 3U);
  EXPECT_EQ(loaded(text, {{"N", "5"}}).config.workers, 5U);
}

TEST(Environment, AMissingVariableIsAProblemAtItsPlace) {
  EXPECT_THAT(
      problems_of(std::string(kSmall) + "workers: ${N}\n"),
      ElementsAre("7:10: workers: the environment variable N is not set; ${N:-default} gives "
                  "a default"));
}

TEST(Environment, AValueAddsNoYaml) {
  const std::string text = std::string(kSmall) + "admin: {token: \"${T}\"}\n";
  EXPECT_EQ(loaded(text, {{"T", "a\", address: \"0.0.0.0:1"}}).config.admin.address.port, 9901);
  EXPECT_THAT(problems_of(text, {{"T", "a\nworkers: 1"}}), ElementsAre(HasSubstr("line break")));
  EXPECT_EQ(loaded(text, {{"T", "${X}"}}).config.admin.token, "${X}");  // taken once
}

TEST(Environment, CanBeEscaped) {
  const std::string text = std::string(kSmall) + "admin: {token: '$${N} $5 $ ${A}${B}'}\n";
  EXPECT_EQ(loaded(text, {{"A", "$"}, {"B", "{"}}).config.admin.token, "${N} $5 $ ${");
}

TEST(Environment, AMessageSaysWhereAValueIsFrom) {
  EXPECT_THAT(problems_of(std::string(kSmall) + "workers: ${N}\n", {{"N", "many"}}),
              ElementsAre(HasSubstr("\"many\" (from \"${N}\") is not a whole number")));
}

TEST(Warnings, ListenersOnOneAddress) {
  const Loaded result = loaded(
      "listeners:\n"
      "  - {name: all, address: '0.0.0.0:80', pool: p}\n"
      "  - {name: one, address: '127.0.0.1:80', pool: p}\n"
      "pools: {p: {servers: [{name: a, address: 'h:1'}]}}\n");
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_THAT(result.warnings[0].headline(),
              StartsWith("main.yaml:3:26: listeners[1].address: \"127.0.0.1:80\" shares its port"));
}

TEST(ProblemText, MarksThePlace) {
  const LoadResult result = test::load_text("listeners: []\n\tx");
  EXPECT_THAT(std::get<Failure>(result).problems.at(0).text(), HasSubstr("\n  "));
  const LoadResult wide =
      test::load_text(std::string(kSmall) + "zone: '" + std::string(300, 'x') +
                      "'\nadmin: {token: '" + std::string(300, 'x') + "', port: 1}\n");
  const auto& problems = std::get<Failure>(wide).problems;
  ASSERT_EQ(problems.size(), 2U);
  for (const Problem& problem : problems) EXPECT_LT(problem.source.size(), 250U);
  EXPECT_EQ(problems[1].source.substr(problems[1].source.find("port")).substr(0, 7), "port: 1");
}

TEST(QuickConfig, StandsForAFile) {
  const std::string text = quick_config("127.0.0.1:0", {"10.0.0.1:80", "[::1]:80"});
  const Config config = loaded(text).config;
  EXPECT_EQ(config.listeners.at(0).address.text, "127.0.0.1:0");
  ASSERT_EQ(config.pools.at(0).servers.size(), 2U);
  EXPECT_EQ(config.pools[0].servers[1].name, "server-2");
  EXPECT_EQ(config.pools[0].servers[1].address.text, "[::1]:80");
  EXPECT_THAT(problems_of(quick_config("h:1", {"x', y: '${Z}"})),
              ElementsAre(HasSubstr("x', y: '")));
  EXPECT_THAT(problems_of(quick_config("h:1", {})), ElementsAre(HasSubstr("pools.pages.servers")));
}

class RealFiles : public testing::Test {
 protected:
  RealFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "clockwise-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RealFiles() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(RealFiles, AreReadWhole) {
  const std::string path = folder_ + "/a";
  const std::string text(200'000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(std::get<0>(real_files()(path)), text);
}

TEST_F(RealFiles, GiveReasons) {
  const FileReader read = real_files();
  EXPECT_EQ(std::get<1>(read(folder_ + "/none")), "no such file or directory");
  EXPECT_EQ(std::get<1>(read(folder_)), "is a directory");
  EXPECT_EQ(std::get<1>(read("/dev/null")), "is not a regular file");
  const std::string large = folder_ + "/large";
  std::ofstream(large) << "x";
  std::filesystem::resize_file(large, (std::uintmax_t{64} << 20) + 1);
  EXPECT_EQ(std::get<1>(read(large)), "larger than 64 MiB");
  const LoadResult result = load(folder_, read, real_environment());
  EXPECT_EQ(std::get<Failure>(result).code, FailureCode::unreadable);
}

}  // namespace
}  // namespace clockwise::config
