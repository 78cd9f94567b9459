#include "admin/api.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "cache/store.h"
#include "unit/admin/world.h"

namespace clockwise::admin {
namespace {

using testing::HasSubstr;
using testing_world::World;
using upstream::ReloadResult;
using upstream::Trigger;
namespace json = boost::json;

std::string error_code(const Response& response) {
  return json::parse(response.body).at("error").at("code").as_string().c_str();
}

std::string header(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return {};
}

class ApiTest : public testing::Test {
 protected:
  World world;
};

TEST_F(ApiTest, HealthAndReadiness) {
  EXPECT_EQ(world.get("/healthz").status, 200U);
  EXPECT_EQ(world.get("/readyz").status, 200U);
  world.directory.set_stopping();
  EXPECT_EQ(world.get("/healthz").status, 200U);
  EXPECT_EQ(world.get("/readyz").status, 503U);
}

TEST_F(ApiTest, UnknownPathListsTheCalls) {
  const Response response = world.get("/api/v1/nothing");
  EXPECT_EQ(response.status, 404U);
  EXPECT_EQ(error_code(response), "not_found");
  EXPECT_THAT(response.body, HasSubstr("GET /api/v1/pools/{pool}/lookup"));
}

TEST_F(ApiTest, WrongMethodNamesTheRightOne) {
  const Response reload = world.get("/api/v1/reload");
  EXPECT_EQ(reload.status, 405U);
  EXPECT_EQ(header(reload, "Allow"), "POST");
  EXPECT_EQ(header(world.post("/api/v1/status"), "Allow"), "GET, HEAD");
}

TEST_F(ApiTest, UnknownPoolIsNamed) {
  const Response response = world.get("/api/v1/pools/none");
  EXPECT_EQ(response.status, 404U);
  EXPECT_THAT(response.body, HasSubstr("\\\"none\\\""));
  EXPECT_THAT(world.get("/api/v1/pools/pagse").body, HasSubstr("did you mean \\\"pages\\\"?"));
}

TEST_F(ApiTest, MalformedTargetIsRefused) {
  EXPECT_EQ(world.get("/api/v1/pools/%zz").status, 400U);
}

TEST_F(ApiTest, StatusTellsWhatRuns) {
  const json::value status = world.json("/api/v1/status");
  EXPECT_EQ(status.at("config").at("file").as_string(), "clockwise.yaml");
  EXPECT_EQ(status.at("config").at("digest").as_string(), "0123456789ab");
  EXPECT_EQ(status.at("listeners").at(0).at("name").as_string(), "web");
  EXPECT_EQ(status.at("listeners").at(0).at("address").as_string(), "127.0.0.1:40000");
  EXPECT_TRUE(status.at("last_reload").is_null());
}

TEST_F(ApiTest, StatusTellsWhyTheLastReloadFailed) {
  upstream::ReloadOutcome outcome;
  outcome.result = ReloadResult::invalid;
  outcome.trigger = Trigger::watch;
  outcome.time = upstream::WallClock::time_point{std::chrono::milliseconds{1714564800250}};
  outcome.errors = {{{"clockwise.yaml", 14, 15}, "bad weight", ""}};
  world.directory.record_reload(outcome);
  const json::value last = world.json("/api/v1/status").at("last_reload");
  EXPECT_EQ(json::serialize(last),
            R"({"result":"invalid","trigger":"watch","time":"2024-05-01T12:00:00.250Z",)"
            R"("errors":[{"code":"invalid","message":"bad weight","position":)"
            R"({"file":"clockwise.yaml","line":14,"column":15}}]})");
}

TEST_F(ApiTest, PoolShowsServersWithShareAndTraffic) {
  auto& cells = world.directory.backend("pages", "a")->cells;
  cells.at(0).requests[0].add(3);
  cells.at(1).requests[0].add(4);
  cells.at(1).in_flight.add(2);
  for (int i = 0; i < 100; ++i) cells.at(0).duration.observe(1'500'000);
  const json::value pool = world.json("/api/v1/pools/pages");
  EXPECT_EQ(pool.at("name").as_string(), "pages");
  EXPECT_EQ(pool.at("points_total").to_number<int>(), 300);
  EXPECT_FALSE(pool.at("handoff_active").as_bool());
  EXPECT_TRUE(pool.at("last_remap").is_null());
  const json::value& a = pool.at("servers").at(0);
  EXPECT_EQ(a.at("requests_total").at("2xx").to_number<int>(), 7);
  EXPECT_EQ(a.at("requests_in_flight").to_number<int>(), 2);
  EXPECT_EQ(a.at("points").to_number<int>(), 100);
  EXPECT_EQ(a.at("health").as_string(), "up");
  EXPECT_DOUBLE_EQ(a.at("expected_ratio").to_number<double>(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(a.at("latency_seconds").at("p50").as_double(), 0.00175);
  double shares = 0;
  for (const json::value& server : pool.at("servers").as_array())
    shares += server.at("share_ratio").to_number<double>();
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_TRUE(pool.at("servers").at(1).at("latency_seconds").at("p99").is_null());
  EXPECT_EQ(world.json("/api/v1/pools").at("pools").at(0), pool);
}

TEST_F(ApiTest, AServerMayBeStoppedWhenNobodyIsOrWillBeWithIt) {
  const auto safe = [&] {
    return world.json("/api/v1/pools/pages").at("servers").at(0).at("safe_to_stop").as_bool();
  };
  std::vector<config::Server> servers = world.config.pools[0].servers;
  EXPECT_FALSE(safe()) << "it is active";
  servers[0].state = config::ServerState::draining;
  world.publish_servers(servers);
  EXPECT_TRUE(safe());
  auto& cells = world.directory.backend("pages", "a")->cells;
  cells.at(1).waiting.add();
  EXPECT_FALSE(safe()) << "one waits for a connection";
  cells.at(0).in_flight.add();
  cells.at(1).waiting.sub();
  EXPECT_FALSE(safe());
  cells.at(0).in_flight.sub();
  EXPECT_TRUE(safe());
}

TEST_F(ApiTest, WhatWasAskedForIsShownShort) {
  const std::string much(8'000, 'x');
  for (const std::string& target :
       {"/api/v1/pools/" + much, "/api/v1/pools/pages/lookup?hash=" + much,
        "/api/v1/pools/pages/lookup?key=a&replicas=" + much}) {
    const Response response = world.get(target);
    EXPECT_GE(response.status, 400U);
    EXPECT_LT(response.body.size(), 400U) << response.body;
  }
  EXPECT_LT(world.post("/api/v1/remaps/" + much + "/rollback").body.size(), 400U);
}

TEST_F(ApiTest, RingListsItsPointsInOrder) {
  const json::value ring = world.json("/api/v1/pools/pages/ring");
  const json::array& points = ring.at("points").as_array();
  ASSERT_EQ(points.size(), 300U);
  std::uint64_t last = 0;
  for (const json::value& point : points) {
    const std::uint64_t position = std::stoull(point.at("position").as_string().c_str());
    EXPECT_LE(last, position);
    last = position;
  }
}

TEST_F(ApiTest, LookupTakesKeysByteForByte) {
  const auto ring = world.directory.view().routing->pool("pages")->ring;
  const json::value keys =
      world.json("/api/v1/pools/pages/lookup?key=%2Fa%20b%2Bc&key=/a+b").at("keys");
  EXPECT_EQ(keys.at(0).at("key").as_string(), "/a b+c");
  EXPECT_EQ(keys.at(0).at("hash").as_string(), std::to_string(ring->hash("/a b+c")));
  EXPECT_EQ(keys.at(1).at("key").as_string(), "/a+b");
  EXPECT_EQ(keys.at(0).at("replicas").as_array().size(), 1U);
  EXPECT_TRUE(keys.at(0).at("previous").is_null());
}

TEST_F(ApiTest, LookupOfAPositionAndOfReplicas) {
  const json::value key =
      world.json("/api/v1/pools/pages/lookup?hash=0&replicas=9").at("keys").at(0);
  EXPECT_EQ(key.at("hash").as_string(), "0");
  EXPECT_EQ(key.at("replicas").as_array().size(), 3U);
  EXPECT_EQ(key.at("replicas").at(0), key.at("server"));
}

TEST_F(ApiTest, OfMemcachedServersThoseThatHoldTheKeyAreNamed) {
  EXPECT_EQ(world.json("/api/v1/pools/pages").at("protocol").as_string(), "http");
  world.protocol = config::Protocol::memcached;
  world.replicas = 2;
  world.publish({"a", "b", "c"});
  EXPECT_EQ(world.json("/api/v1/pools/pages").at("protocol").as_string(), "memcached");
  EXPECT_EQ(world.json("/api/v1/pools/pages").at("ring").at("replicas"), json::value(2));
  const auto named = [&](const std::string& query) {
    const json::value found = world.json("/api/v1/pools/pages/lookup?key=a" + query);
    return found.at("keys").at(0).at("replicas").as_array().size();
  };
  EXPECT_EQ(named(""), 2U);
  EXPECT_EQ(named("&replicas=1"), 1U);
  EXPECT_EQ(named("&replicas=3"), 3U);
}

TEST_F(ApiTest, LookupSaysWhatIsMissing) {
  EXPECT_EQ(world.get("/api/v1/pools/pages/lookup").status, 400U);
  EXPECT_EQ(world.get("/api/v1/pools/pages/lookup?hash=-1").status, 400U);
  EXPECT_EQ(world.get("/api/v1/pools/pages/lookup?key=a&replicas=0").status, 400U);
}

TEST_F(ApiTest, LookupNamesThePreviousOwnerWhileItIsRemembered) {
  const auto before = world.directory.view().routing->pool("pages")->ring;
  auto watch = std::make_shared<upstream::RemapWatch>(2);
  watch->previous = before;
  watch->names = {"a", "b", "c"};
  watch->now = {0, 1, upstream::RemapWatch::kGone};
  watch->until = world.now + std::chrono::minutes{1};
  std::vector<config::Server> left(2);
  left[0].name = "a";
  left[1].name = "b";
  world.publish_servers(left, watch);

  std::string moved, stays;
  for (int i = 0; moved.empty() || stays.empty(); ++i) {
    const std::string key = "k" + std::to_string(i);
    (before->owner(before->hash(key)) == 2 ? moved : stays) = key;
  }
  const auto previous = [&](const std::string& key) {
    return world.json("/api/v1/pools/pages/lookup?key=" + key).at("keys").at(0).at("previous");
  };
  EXPECT_EQ(previous(moved), json::value("c"));
  EXPECT_TRUE(previous(stays).is_null());
  world.now += std::chrono::minutes{1};
  EXPECT_TRUE(previous(moved).is_null());
}

TEST_F(ApiTest, PlanReportsAgainstTheLiveRing) {
  const Response response = world.post("/api/v1/pools/pages/plan",
                                       "servers:\n"
                                       "  - {name: a, address: '127.0.0.1:8000'}\n"
                                       "  - {name: b, address: '127.0.0.1:8001'}\n");
  ASSERT_EQ(response.status, 200U) << response.body;
  const json::value report = json::parse(response.body).at("pools").at(0);
  EXPECT_EQ(report.at("pool").as_string(), "pages");
  EXPECT_GT(report.at("moved_ratio").to_number<double>(), 0.1);
  EXPECT_EQ(report.at("needless_ratio").to_number<double>(), 0);
  EXPECT_EQ(world.directory.view().routing->pool("pages")->servers.size(), 3U) << "only a question";
}

TEST_F(ApiTest, PlanTellsWhatItMeansForTheTraffic) {
  const upstream::View view = world.directory.view();
  const upstream::Pool& pool = *view.routing->pool("pages");
  const auto plan = [&] {
    const Response response = world.post("/api/v1/pools/pages/plan",
                                         "servers:\n  - {name: a, address: '127.0.0.1:8000'}\n");
    return json::parse(response.body).at("pools").at(0);
  };
  EXPECT_EQ(plan().at("seen_keys").at("total").to_number<int>(), 0);
  EXPECT_TRUE(plan().at("cost").at("requests_per_second").is_null());
  for (int i = 0; i < 100; ++i)
    pool.recent->by_worker.at(i % 2).add({.position = pool.ring->hash("k" + std::to_string(i)),
                                          .at = upstream::steady_now(),
                                          .answer = http::CacheAnswer::hit});
  const json::value report = plan();
  EXPECT_EQ(report.at("seen_keys").at("total").to_number<int>(), 100);
  EXPECT_GT(report.at("seen_keys").at("moved").to_number<int>(), 0);
  EXPECT_EQ(report.at("cost").at("hit_ratio").to_number<double>(), 1);
  EXPECT_GT(report.at("cost").at("extra_fetches_per_second").to_number<double>(), 0);
}

TEST_F(ApiTest, PlanOfABadListSaysWhere) {
  const Response response =
      world.post("/api/v1/pools/pages/plan", "servers:\n  - {name: a, weight: heavy}\n");
  EXPECT_EQ(response.status, 400U);
  const json::value body = json::parse(response.body);
  EXPECT_EQ(body.at("error").at("code").as_string(), "invalid");
  EXPECT_EQ(body.at("error").at("position").at("line").to_number<int>(), 2);
  EXPECT_GE(body.at("errors").as_array().size(), 1U);
}

TEST_F(ApiTest, RemapsAreNewestFirst) {
  for (const double moved : {0.25, 0.5}) {
    upstream::Remap remap;
    remap.cause = "reload";
    remap.trigger = Trigger::api;
    remap.report.pool = "pages";
    remap.report.moved_ratio = moved;
    world.directory.record_remap(std::move(remap));
  }
  const json::value remaps = world.json("/api/v1/remaps");
  EXPECT_EQ(remaps.at("total").to_number<int>(), 2);
  const json::object& newest = remaps.at("remaps").at(0).as_object();
  EXPECT_EQ(newest.at("id").to_number<int>(), 2);
  EXPECT_EQ(newest.at("trigger").as_string(), "api");
  EXPECT_EQ(newest.at("moved_ratio").to_number<double>(), 0.5);
  EXPECT_FALSE(newest.contains("guard"));
  EXPECT_EQ(world.json("/api/v1/pools/pages").at("last_remap").at("id").to_number<int>(), 2);
}

TEST_F(ApiTest, AppliedReloadIsReported) {
  world.next_outcome.result = ReloadResult::applied;
  world.next_outcome.trigger = Trigger::api;
  world.next_outcome.config_digest = "abc";
  world.next_outcome.not_applied = {{"listeners[0].address", "needs a restart"}};
  const Response response = world.post("/api/v1/reload");
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::serialize(json::parse(response.body)),
            R"({"result":"applied","trigger":"api","forced":false,"config_digest":"abc",)"
            R"("duration_seconds":0,"pools":[],)"
            R"("not_applied":[{"path":"listeners[0].address","reason":"needs a restart"}]})");
}

TEST_F(ApiTest, ForceIsPassedOn) {
  world.post("/api/v1/reload");
  world.post("/api/v1/reload?force=1");
  world.post("/api/v1/reload?force=0");
  EXPECT_EQ(world.reloads, (std::vector<bool>{false, true, false}));
}

TEST_F(ApiTest, InvalidReloadListsEveryError) {
  world.next_outcome.result = ReloadResult::invalid;
  world.next_outcome.message = "clockwise.yaml:3:1: unknown key (and 1 more)";
  world.next_outcome.errors = {{{"clockwise.yaml", 3, 1}, "unknown key", ""},
                               {{"clockwise.yaml", 9, 4}, "no number", ""}};
  const Response response = world.post("/api/v1/reload");
  EXPECT_EQ(response.status, 409U);
  const json::value body = json::parse(response.body);
  EXPECT_EQ(body.at("error").at("code").as_string(), "invalid");
  EXPECT_EQ(body.at("error").at("position").at("line").to_number<int>(), 3);
  EXPECT_EQ(body.at("error"), body.at("errors").at(0));
  EXPECT_EQ(body.at("errors").as_array().size(), 2U);
  EXPECT_TRUE(body.at("pools").as_array().empty());
}

TEST_F(ApiTest, UnreadableFileHasNoPositionButAName) {
  world.next_outcome.result = ReloadResult::unreadable;
  world.next_outcome.errors = {{{"clockwise.yaml", 0, 0}, "no such file", ""}};
  const json::value body = json::parse(world.post("/api/v1/reload").body);
  EXPECT_EQ(body.at("error").at("code").as_string(), "unreadable");
  EXPECT_TRUE(body.at("error").at("position").is_null());
  EXPECT_EQ(body.at("errors").at(0).at("message").as_string(), "clockwise.yaml: no such file");
}

TEST_F(ApiTest, RefusedReloadNamesTheGuard) {
  world.next_outcome.result = ReloadResult::refused;
  world.next_outcome.pools.resize(2);
  world.next_outcome.pools[0].refused_by = upstream::Guard::max_shrink;
  world.next_outcome.pools[1].refused_by = upstream::Guard::max_remap;
  const Response response = world.post("/api/v1/reload");
  EXPECT_EQ(response.status, 409U);
  const json::value body = json::parse(response.body);
  EXPECT_EQ(body.at("error").at("code").as_string(), "max_shrink");
  EXPECT_EQ(body.at("error"), body.at("errors").at(0));
  EXPECT_EQ(body.at("errors").at(1).at("code").as_string(), "max_remap");
  EXPECT_EQ(body.at("pools").as_array().size(), 2U);
}

TEST_F(ApiTest, ARollbackAnswersAsAReloadDoes) {
  upstream::ReloadOutcome outcome;
  outcome.result = ReloadResult::applied;
  outcome.trigger = Trigger::api;
  world.next_rollback = outcome;
  const Response response = world.post("/api/v1/remaps/7/rollback?force=1");
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body).at("result").as_string(), "applied");
  world.post("/api/v1/remaps/18446744073709551615/rollback");
  EXPECT_EQ(world.rollbacks,
            (std::vector<std::pair<std::uint64_t, bool>>{{7, true}, {~std::uint64_t{0}, false}}));
}

TEST_F(ApiTest, NoWayBackSaysWhy) {
  using Why = upstream::NoWayBack::Why;
  struct Row {
    Why why;
    unsigned status;
    const char* code;
  };
  for (const Row& row :
       {Row{Why::unknown_change, 404, "not_found"}, Row{Why::not_kept, 409, "not_kept"},
        Row{Why::pool_gone, 409, "pool_gone"}, Row{Why::from_file, 409, "from_file"}}) {
    world.next_rollback = upstream::NoWayBack{row.why, "because"};
    const Response response = world.post("/api/v1/remaps/1/rollback");
    EXPECT_EQ(response.status, row.status) << row.code;
    const json::value error = json::parse(response.body).at("error");
    EXPECT_EQ(error.at("code").as_string(), row.code);
    EXPECT_EQ(error.at("message").as_string(), "because");
  }
}

TEST_F(ApiTest, AChangeThatIsNoNumberIsNotFound) {
  for (const std::string id : {"x", "-1", "1.5", "18446744073709551616", ""})
    EXPECT_EQ(world.post("/api/v1/remaps/" + id + "/rollback").status, 404U) << id;
  EXPECT_TRUE(world.rollbacks.empty());
  EXPECT_EQ(world.get("/api/v1/remaps/1/rollback").status, 405U);
}

TEST_F(ApiTest, ARollbackNeedsTheTokenToo) {
  world.config.admin.token = "secret";
  world.publish({"a"});
  EXPECT_EQ(world.post("/api/v1/remaps/1/rollback").status, 401U);
  EXPECT_TRUE(world.rollbacks.empty());
}

Request put(const std::string& target, const std::string& body) {
  Request request;
  request.method = "PUT";
  request.target = target;
  request.body = body;
  return request;
}

TEST_F(ApiTest, AServerIsChanged) {
  upstream::ReloadOutcome outcome;
  outcome.result = ReloadResult::applied;
  world.next_server_change = outcome;
  const Response response = world.send(
      put("/api/v1/pools/pages/servers/a?force=1", R"({"state": "draining", "weight": 3})"));
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body).at("result").as_string(), "applied");
  ASSERT_EQ(world.server_changes.size(), 1U);
  const auto& [change, forced] = world.server_changes[0];
  EXPECT_EQ(change.pool, "pages");
  EXPECT_EQ(change.server, "a");
  EXPECT_EQ(change.state, config::ServerState::draining);
  EXPECT_EQ(change.weight, 3);
  EXPECT_TRUE(forced);

  world.next_server_change = upstream::NoSuchServer{"pool pages has no server named \"x\""};
  EXPECT_EQ(world.send(put("/api/v1/pools/pages/servers/x", R"({"weight":1})")).status, 404U);
}

TEST_F(ApiTest, ABadChangeOfAServerIsRefusedWhole) {
  const Response response =
      world.send(put("/api/v1/pools/pages/servers/a", R"({"weight": 3, "colour": 1})"));
  EXPECT_EQ(response.status, 400U);
  EXPECT_EQ(json::parse(response.body).at("error").at("message").as_string(),
            R"(unknown field "colour"; there are: state, weight)");
  world.config.admin.token = "secret";
  world.publish({"a"});
  EXPECT_EQ(world.send(put("/api/v1/pools/pages/servers/a", R"({"weight": 3})")).status, 401U);
  EXPECT_EQ(world.get("/api/v1/pools/pages/servers/a").status, 405U);
  EXPECT_TRUE(world.server_changes.empty());
}

TEST_F(ApiTest, WhatRunsAndIsNotWrittenIsNamed) {
  EXPECT_TRUE(world.json("/api/v1/status").at("differs_from_file").as_array().empty());
  const auto running = std::make_shared<config::Config>(world.config);
  auto file = std::make_shared<config::Config>(world.config);
  config::Pool& pool = file->pools[0];
  pool.ring.scheme.points = 7;
  pool.servers[0].weight = 9;
  pool.servers[0].state = config::ServerState::draining;
  pool.servers[1].address.port = 1;
  pool.servers[2].name = "z";
  world.directory.publish(world.directory.view().routing, running, "clockwise.yaml", "0", file);
  EXPECT_EQ(json::serialize(world.json("/api/v1/status").at("differs_from_file")),
            R"([{"pool":"pages","server":null,"overridden":["ring"]},)"
            R"({"pool":"pages","server":"a","overridden":["weight","state"]},)"
            R"({"pool":"pages","server":"b","overridden":["address"]},)"
            R"({"pool":"pages","server":"c","overridden":["added"]},)"
            R"({"pool":"pages","server":"z","overridden":["removed"]}])");
  const json::value servers = world.json("/api/v1/pools/pages").at("servers");
  EXPECT_EQ(servers.at(0).at("overridden"), (json::array{"weight", "state"}));
  EXPECT_EQ(servers.at(2).at("overridden"), (json::array{"added"}));
}

TEST_F(ApiTest, AnotherOrderIsNamedWhereTheRingGoesByIt) {
  const auto differs = [&](ring::Placement placement) {
    const upstream::View view = world.directory.view();
    auto pool = std::make_shared<upstream::Pool>(*view.routing->pools[0]);
    pool->ring = *ring::build({.placement = placement, .points = 100},
                              config::members_of(pool->config.servers));
    auto routing = std::make_shared<upstream::Routing>();
    routing->pools.push_back(pool);
    auto file = std::make_shared<config::Config>(*view.config);
    std::swap(file->pools[0].servers[0], file->pools[0].servers[2]);
    file->pools[0].servers[1].weight = 9;
    world.directory.publish(routing, view.config, "clockwise.yaml", "0", file);
    return json::serialize(world.json("/api/v1/status").at("differs_from_file"));
  };
  const std::string weight = R"({"pool":"pages","server":"b","overridden":["weight"]}])";
  EXPECT_EQ(differs(ring::Placement::clockwise), "[" + weight);
  EXPECT_EQ(differs(ring::Placement::modulo),
            R"([{"pool":"pages","server":null,"overridden":["order"]},)" + weight);
}

TEST_F(ApiTest, ACacheShowsWhatItHoldsAndWhoUsesIt) {
  testing_world::fill(*world.cache->store, "http://h/a");
  testing_world::fill(*world.cache->store, "http://h/b");
  world.cache->store->invalidate("http://h/a");
  world.directory.cache("pages", "store")->cells.at(1).requests[0].add(5);
  const json::value cache = world.json("/api/v1/caches/store");
  EXPECT_EQ(cache.at("name").as_string(), "store");
  EXPECT_EQ(cache.at("size").to_number<int>(), 1 << 20);
  EXPECT_GT(cache.at("bytes").to_number<int>(), 0);
  EXPECT_EQ(cache.at("objects").to_number<int>(), 1);
  EXPECT_EQ(json::serialize(cache.at("requests_total")),
            R"({"hit":5,"stale":0,"revalidated":0,"miss":0,"collapsed":0,"bypass":0})");
  EXPECT_EQ(json::serialize(cache.at("evictions_total")),
            R"({"size":0,"expired":0,"purged":0,"invalidated":1})");
  EXPECT_EQ(cache.at("rejected_total").to_number<int>(), 0);
  EXPECT_EQ(json::serialize(cache.at("pools")), R"(["pages"])");
  EXPECT_EQ(world.json("/api/v1/caches").at("caches").at(0), cache);
  EXPECT_EQ(world.get("/api/v1/caches/none").status, 404U);
}

TEST_F(ApiTest, APurgeTellsHowManyItTook) {
  cache::Store& store = *world.cache->store;
  for (const char* key : {"http://h/a", "http://h/b", "http://i/a", "http://i/b"})
    testing_world::fill(store, key, "news");
  const auto purged = [&](const std::string& body) {
    const Response response = world.post("/api/v1/caches/store/purge", body);
    EXPECT_EQ(response.status, 200U) << response.body;
    return json::parse(response.body).at("purged").to_number<int>();
  };
  EXPECT_EQ(purged(R"({"url": "http://H:80/a"})"), 1);
  EXPECT_EQ(purged(R"({"tag": "sport"})"), 0);
  EXPECT_EQ(purged(R"({"host": "h"})"), 1);
  EXPECT_EQ(purged(R"({"prefix": "http://i/b"})"), 1);
  EXPECT_EQ(purged(R"({"tag": "news", "soft": true})"), 1);
  EXPECT_EQ(store.stats().objects, 1U);
  EXPECT_EQ(purged(R"({"all": true})"), 1);
  EXPECT_EQ(store.stats().objects, 0U);
}

TEST_F(ApiTest, ABadPurgeTakesNothing) {
  testing_world::fill(*world.cache->store, "http://h/a");
  const Response bad = world.post("/api/v1/caches/store/purge", R"({"all": false})");
  EXPECT_EQ(bad.status, 400U);
  EXPECT_EQ(error_code(bad), "invalid");
  const Response unknown = world.post("/api/v1/caches/stroe/purge", R"({"all": true})");
  EXPECT_EQ(unknown.status, 404U);
  EXPECT_EQ(json::parse(unknown.body).at("error").at("message").as_string(),
            R"(no cache is named "stroe", did you mean "store"?)");
  EXPECT_EQ(header(world.get("/api/v1/caches/store/purge"), "Allow"), "POST");
  world.config.admin.token = "secret";
  world.publish({"a"});
  EXPECT_EQ(world.post("/api/v1/caches/store/purge", R"({"all": true})").status, 401U);
  EXPECT_EQ(world.cache->store->stats().objects, 1U);
}

TEST_F(ApiTest, APurgeIsALongAnswer) {
  testing_world::fill(*world.cache->store, "http://h/a");
  Request request;
  request.method = "POST";
  request.target = "/api/v1/caches/store/purge";
  request.body = R"({"all": true})";
  world.busy = true;
  EXPECT_EQ(world.send(request).status, 503U);
  EXPECT_EQ(world.cache->store->stats().objects, 1U);
  world.busy = false;
  world.waits = true;
  std::optional<Response> answer;
  world.api.handle(request, [&](Response response) { answer = std::move(response); });
  EXPECT_FALSE(answer);
  ASSERT_EQ(world.waiting.size(), 1U);
  world.waiting.front()();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200U);
  EXPECT_EQ(world.cache->store->stats().objects, 0U);
}

TEST_F(ApiTest, LongAnswersAreMadeElsewhere) {
  Request asked[4];
  asked[0].target = "/api/v1/pools/pages/ring";
  asked[1].target = "/api/v1/pools/pages/lookup?key=k";
  asked[2].target = "/api/v1/remaps";
  asked[3].method = "POST";
  asked[3].target = "/api/v1/pools/pages/plan";
  asked[3].body = "servers: [{name: b, address: '127.0.0.1:8001'}]";
  for (Request& request : asked) {
    const Response at_once = world.send(request);
    world.waits = true;
    std::optional<Response> answer;
    world.api.handle(request, [&](Response response) { answer = std::move(response); });
    EXPECT_FALSE(answer) << request.target;
    ASSERT_EQ(world.waiting.size(), 1U) << request.target;
    EXPECT_EQ(world.get("/healthz").status, 200U);
    // What the answer is made of is that of the moment of the question.
    world.publish({"z"});
    world.waiting.front()();
    ASSERT_TRUE(answer) << request.target;
    EXPECT_EQ(answer->status, at_once.status) << request.target;
    EXPECT_EQ(answer->body, at_once.body) << request.target;
    world.publish({"a", "b", "c"});
    world.waiting.clear();
    world.waits = false;
  }
}

TEST_F(ApiTest, TooManyLongAnswersAreRefusedForAWhile) {
  world.busy = true;
  const Response response = world.post("/api/v1/pools/pages/plan", "servers: []");
  EXPECT_EQ(response.status, 503U);
  EXPECT_EQ(header(response, "Retry-After"), "1");
  EXPECT_THAT(response.body, HasSubstr("\"code\": \"busy\""));
  EXPECT_EQ(world.get("/api/v1/status").status, 200U);
  EXPECT_EQ(world.get("/metrics").status, 200U);
}

TEST_F(ApiTest, LargeAnswersAreCompressedWhenAsked) {
  Request request;
  request.target = "/metrics";
  const std::string plain = world.send(request).body;
  request.accept_encoding = "br;q=1.0, gzip;q=0.8";
  const Response response = world.send(request);
  EXPECT_EQ(header(response, "Content-Encoding"), "gzip");
  EXPECT_LT(response.body.size(), plain.size() / 4);
  EXPECT_EQ(response.body.substr(0, 2), "\x1f\x8b");
  request.accept_encoding = "gzip;q=0";
  EXPECT_EQ(header(world.send(request), "Content-Encoding"), "");
}

struct Change {
  const char* name;
  std::string token;  // of the configuration
  Request request;
  unsigned status;
};

Request post_reload(bool local, std::string authorization, std::string host = "",
                    std::string origin = "", std::string fetch_site = "") {
  Request request;
  request.method = "POST";
  request.target = "/api/v1/reload";
  request.local = local;
  request.authorization = std::move(authorization);
  request.host = std::move(host);
  request.origin = std::move(origin);
  request.fetch_site = std::move(fetch_site);
  return request;
}

TEST(Access, DecidesWhoMayChange) {
  const Change rows[]{
      {"this machine needs no token", "", post_reload(true, ""), 200},
      {"another machine does", "", post_reload(false, ""), 403},
      {"a token is asked for everywhere", "secret", post_reload(true, ""), 401},
      {"wrong token", "secret", post_reload(false, "Bearer sEcret"), 401},
      {"longer token", "secret", post_reload(false, "Bearer secrets"), 401},
      {"other scheme", "secret", post_reload(false, "Basic secret"), 401},
      {"right token", "secret", post_reload(false, "Bearer secret"), 200},
      {"more blanks", "secret", post_reload(false, "Bearer   secret"), 200},
      {"no token behind the blanks", "secret", post_reload(false, "Bearer   "), 401},
      {"another site, no origin", "", post_reload(true, "", "", "", "cross-site"), 403},
      {"another site, with a token", "secret",
       post_reload(true, "Bearer secret", "", "", "cross-site"), 403},
      {"typed by the user", "", post_reload(true, "", "", "", "none"), 200},
      {"own page, as told", "", post_reload(true, "", "", "", "same-origin"), 200},
      {"own page", "", post_reload(true, "", "127.0.0.1:9901", "http://127.0.0.1:9901"), 200},
      {"own page by name", "", post_reload(true, "", "localhost:9901", "http://localhost:9901"),
       200},
      {"own page, IPv6", "", post_reload(true, "", "[::1]:9901", "http://[::1]:9901"), 200},
      {"another site", "", post_reload(true, "", "127.0.0.1:9901", "http://evil.example"), 403},
      {"rebound name", "", post_reload(true, "", "evil.example:9901", "http://evil.example:9901"),
       403},
      {"sandboxed page", "", post_reload(true, "", "127.0.0.1:9901", "null"), 403},
  };
  for (const Change& row : rows) {
    World world;
    world.config.admin.token = row.token;
    world.publish({"a"});
    const Response response = world.send(row.request);
    EXPECT_EQ(response.status, row.status) << row.name;
    EXPECT_EQ(world.reloads.size(), row.status == 200 ? 1U : 0U) << row.name;
    EXPECT_EQ(header(response, "WWW-Authenticate").empty(), row.status != 401) << row.name;
  }
}

TEST(Access, ReadingNeedsNoToken) {
  World world;
  world.config.admin.token = "secret";
  world.publish({"a"});
  Request request;
  request.target = "/api/v1/pools";
  request.local = false;
  EXPECT_EQ(world.send(request).status, 200U);
}

// A plan changes nothing, so it is there for everyone who may read.
TEST(Access, PlanningNeedsNoToken) {
  for (const char* token : {"", "secret"}) {
    World world;
    world.config.admin.token = token;
    world.publish({"a"});
    Request request;
    request.method = "POST";
    request.target = "/api/v1/pools/pages/plan";
    request.body = "servers:\n  - {name: a, address: 10.0.0.1:80}\n";
    request.local = false;
    EXPECT_EQ(world.send(request).status, 200U) << token;
    request.host = "127.0.0.1:9901";
    request.origin = "http://evil.example";
    EXPECT_EQ(world.send(request).status, 403U) << token;
  }
}

}  // namespace
}  // namespace clockwise::admin
