#include "upstream/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "support/pools.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;
using metrics::Routed;
using ring::Point;
using ring::Position;
using test::server;
using testing::ElementsAre;

// A ring of the points it is given: the first at or after a position, wrapping.
class HandMadeRing final : public ring::Ring {
 public:
  explicit HandMadeRing(std::vector<Point> points)
      : Ring([](const Ring&, std::string_view key) noexcept { return Position{key.size()}; }, {}) {
    points_.assign(points.begin(), points.end());
  }
  ring::ServerIndex owner(Position position) const noexcept override {
    return successor(position, {})->server;
  }

 private:
  std::optional<Point> walk(Position position,
                            const ring::Excluded& excluded) const noexcept override {
    for (const Position from : {position, Position{0}})
      for (const Point& point : points_)
        if (point.position >= from && !excluded(point.server)) return point;
    return std::nullopt;
  }
};

class TableOfThree final : public ring::Ring {
 public:
  TableOfThree() : Ring([](const Ring&, std::string_view) noexcept { return Position{7}; }, {}) {
    points_ = {{0, 0}, {1, 1}, {2, 0}};
    layout_.table = slots_;
  }
  ring::ServerIndex owner(Position position) const noexcept override {
    return slots_[position % 3];
  }

 private:
  std::optional<Point> walk(Position position,
                            const ring::Excluded& excluded) const noexcept override {
    for (Position i = 0; i < 3; ++i)
      if (const Point& point = points_[(position + i) % 3]; !excluded(point.server)) return point;
    return std::nullopt;
  }

  std::array<ring::ServerIndex, 3> slots_{0, 1, 0};
};

config::Pool abc() { return test::pool({server("a"), server("b"), server("c")}); }

Question at(Position position) { return {std::to_string(position), position, false}; }

TEST(Explain, ShowsThePointsAroundTheHash) {
  const HandMadeRing ring({{10, 0}, {20, 1}, {30, 2}, {40, 0}, {50, 1}, {60, 2}});
  struct Row {
    const char* name;
    Position hash;
    Point before;
    std::vector<Point> after;
  };
  const Row rows[]{
      {"between", 25, {20, 1}, {{30, 2}, {40, 0}, {50, 1}, {60, 2}}},
      {"exact hit", 30, {20, 1}, {{30, 2}, {40, 0}, {50, 1}, {60, 2}}},
      {"below the first", 3, {60, 2}, {{10, 0}, {20, 1}, {30, 2}, {40, 0}}},
      {"above the last", 61, {60, 2}, {{10, 0}, {20, 1}, {30, 2}, {40, 0}}},
      {"around the top", 55, {50, 1}, {{60, 2}, {10, 0}, {20, 1}, {30, 2}}},
  };
  for (const Row& row : rows) {
    const Explanation found = explain(abc(), ring, at(row.hash));
    EXPECT_EQ(found.before, row.before) << row.name;
    EXPECT_EQ(found.after, row.after) << row.name;
    EXPECT_EQ(found.place.owners, std::vector{row.after[0].server}) << row.name;
    EXPECT_FALSE(found.slot) << row.name;
  }
}

TEST(Explain, WalksOverEachServerOnceThroughItsFirstPoint) {
  const HandMadeRing ring({{10, 0}, {20, 1}, {30, 1}, {40, 0}, {50, 2}});
  EXPECT_THAT(explain(abc(), ring, at(15)).walk,
              ElementsAre(Step{20, 1}, Step{40, 0}, Step{50, 2}));
  EXPECT_THAT(explain(abc(), ring, at(45)).walk,
              ElementsAre(Step{50, 2}, Step{10, 0}, Step{20, 1}));
}

TEST(Explain, AtATieTheOwnerComesFirst) {
  const HandMadeRing ring({{10, 2}, {20, 1}, {20, 0}});
  const Explanation found = explain(abc(), ring, at(20));
  EXPECT_THAT(found.walk, ElementsAre(Step{20, 1}, Step{20, 0}, Step{10, 2}));
  EXPECT_EQ(found.before, (Point{10, 2}));
}

TEST(Explain, OneServerIsBeforeAndAfterEverything) {
  const HandMadeRing ring({{10, 0}});
  const Explanation found = explain(test::pool({server("a")}), ring, at(77));
  EXPECT_EQ(found.before, (Point{10, 0}));
  EXPECT_THAT(found.after, ElementsAre(Point{10, 0}));
  EXPECT_EQ(found.chosen, 0U);
}

TEST(Explain, ServersOffTheRingStandLastWithoutAPosition) {
  const config::Pool pool = test::pool(
      {server("a", 1, config::ServerState::down), server("b"), server("c", 0), server("d")});
  const test::BuiltPool built{pool};
  const Explanation found = explain(pool, *built.ring, {"/x", built.ring->hash("/x"), true});
  ASSERT_EQ(found.walk.size(), 4U);
  EXPECT_TRUE(found.walk[1].position);
  EXPECT_EQ(found.walk[2], (Step{std::nullopt, 0}));
  EXPECT_EQ(found.walk[3], (Step{std::nullopt, 2}));
}

// One letter for each server: + well, - out by its health, ? without an address.
LivePool live_pool(std::string_view servers, bool panic = false) {
  LivePool live{{}, panic};
  for (const char one : servers)
    live.servers.push_back({.reachable = one != '?',
                            .usable = one != '-',
                            .health = one == '+' ? "up" : "down",
                            .in_flight = 0});
  return live;
}

void expect_chosen(const Explanation& found, std::optional<ring::ServerIndex> chosen,
                   const char* name) {
  EXPECT_EQ(found.chosen, chosen) << name;
  const auto reason = chosen == 0U ? Routed::home : Routed::failover;
  EXPECT_EQ(found.reason, chosen ? std::optional(reason) : std::nullopt) << name;
}

TEST(Explain, ChoosesWhomARequestWouldAsk) {
  using config::Failover;
  const HandMadeRing ring({{10, 0}, {20, 1}, {30, 2}});
  struct Row {
    const char* name;
    LivePool live;
    std::uint32_t further_tries;
    std::optional<ring::ServerIndex> chosen;
    Failover failover = Failover::next;
  };
  const Row rows[]{
      {"nothing known", {}, 2, 0},
      {"all up", live_pool("+++"), 2, 0},
      {"home without an address", live_pool("?++"), 2, 1},
      {"two without an address", live_pool("??+"), 2, 2},
      {"two without an address, one further try", live_pool("??+"), 1, {}},
      {"none has an address", live_pool("???"), 9, {}},
      {"who is out costs no try", live_pool("--+"), 0, 2},
      {"home out, the next without an address", live_pool("-?+"), 0, {}},
      {"who is out is the last resort", live_pool("-??"), 2, 0},
      {"panic", live_pool("--+", true), 0, 0},
      {"panic, home without an address", live_pool("?-+", true), 1, 2},
      {"fail fast", live_pool("++?"), 2, 0, Failover::fail_fast},
      {"fail fast, home out", live_pool("-++"), 2, {}, Failover::fail_fast},
      {"fail fast, home without an address", live_pool("?++"), 2, {}, Failover::fail_fast},
      {"fail fast in a panic", live_pool("--+", true), 2, 0, Failover::fail_fast},
  };
  for (const Row& row : rows) {
    config::Pool pool = abc();
    pool.retry.attempts = row.further_tries;
    pool.failover = row.failover;
    const Explanation found = explain(pool, ring, at(5), 1, row.live);
    expect_chosen(found, row.chosen, row.name);
  }
}

TEST(Explain, OfSeveralOwnersTheFirstThatCanBeAskedIsChosen) {
  const HandMadeRing ring({{10, 0}, {20, 1}, {30, 2}});
  config::Pool pool = abc();
  pool.ring.replicas = 2;
  pool.failover = config::Failover::fail_fast;
  struct Row {
    const char* name;
    LivePool live;
    std::optional<ring::ServerIndex> chosen;
  };
  const Row rows[]{
      {"nothing known", {}, 0},           {"all up", live_pool("+++"), 0},
      {"home out", live_pool("-++"), 1},  {"home without an address", live_pool("?++"), 1},
      {"both out", live_pool("--+"), {}}, {"panic", live_pool("--+", true), 0},
  };
  for (const Row& row : rows) {
    const Explanation found = explain(pool, ring, at(5), 2, row.live);
    expect_chosen(found, row.chosen, row.name);
  }
}

TEST(Explain, OwnersInOtherZonesStandBeforeTheRestOfTheWalk) {
  const HandMadeRing ring({{10, 0}, {20, 1}, {30, 2}});
  config::Pool pool = abc();
  pool.ring.replicas = 2;
  pool.servers[0].zone = pool.servers[1].zone = "east";
  pool.servers[2].zone = "west";
  const Explanation found = explain(pool, ring, at(5), 2);
  EXPECT_THAT(found.place.owners, ElementsAre(0, 2));
  EXPECT_THAT(found.walk, ElementsAre(Step{10, 0}, Step{30, 2}, Step{20, 1}));
}

TEST(Explain, NobodyIsChosenFromAnEmptyRing) {
  const test::BuiltPool built{server("a", 0)};
  const Explanation found = explain(built.pool, *built.ring, {"k", 5, true});
  EXPECT_FALSE(found.chosen || found.before || found.reason);
  EXPECT_THAT(found.walk, ElementsAre(Step{std::nullopt, 0}));
}

TEST(Explain, OfATableShowsTheSlots) {
  const TableOfThree ring;
  const Explanation found = explain(abc(), ring, {"k", 7, true});
  EXPECT_EQ(found.slot, 1U);
  EXPECT_EQ(found.before, (Point{0, 0}));
  EXPECT_THAT(found.after, ElementsAre(Point{1, 1}, Point{2, 0}, Point{0, 0}));
  EXPECT_THAT(found.walk, ElementsAre(Step{1, 1}, Step{2, 0}));
}

TEST(Explain, TheCanonicalKeyIsWhatTheHashTagLeaves) {
  config::Pool tagged = abc();
  tagged.ring.scheme.hash_tag = "{}";
  const auto canonical = [](const config::Pool& pool, const std::string& key) {
    const test::BuiltPool built{pool};
    const auto found = explain(pool, *built.ring, {key, built.ring->hash(key), true});
    EXPECT_EQ(built.ring->hash(*found.canonical), built.ring->hash(key)) << key;
    return *found.canonical;
  };
  EXPECT_EQ(canonical(tagged, "user:{42}:x"), "42");
  EXPECT_EQ(canonical(tagged, "user:{}:x"), "user:{}:x");
  EXPECT_EQ(canonical(tagged, "user"), "user");
  EXPECT_EQ(canonical(abc(), "user:{42}:x"), "user:{42}:x");
  tagged.ring.scheme.key_namespace = "app:";
  EXPECT_EQ(canonical(tagged, "app:user"), "user");
  EXPECT_EQ(canonical(tagged, "app:user:{42}:x"), "42");
  EXPECT_FALSE(explain(abc(), HandMadeRing({{10, 0}}), at(1)).canonical);
}

TEST(Explain, OwnersAreNoMoreThanAskedAndTheWalkHasThemAll) {
  const test::BuiltPool built{abc()};
  const Question question{"/x", built.ring->hash("/x"), true};
  for (const std::uint32_t replicas : {1U, 2U, 3U, 50U}) {
    const Explanation found = explain(built.pool, *built.ring, question, replicas);
    EXPECT_EQ(found.place.owners,
              locate(built.pool, *built.ring, question.position, replicas).owners);
    EXPECT_EQ(found.walk.size(), 3U);
  }
}

TEST(Explain, WritesTheObjectOfTheInterface) {
  const HandMadeRing ring({{10, 0}, {20, 1}});
  const config::Pool pool =
      test::pool({server("a"), server("b"), server("c", 1, config::ServerState::draining)});
  const Question question{"0123456789abc", 13, true};
  LivePool live = live_pool("+-+");
  live.servers[1].in_flight = 3;
  EXPECT_EQ(
      json::serialize(to_json(pool, question, explain(pool, ring, question, 1, live), live, "c")),
      R"({"key":"0123456789abc","hash":"13","server":"b","address":"b:80",)"
      R"("replicas":["b"],"previous":"c","canonical_key":"0123456789abc","slot":null,)"
      R"("point_before":{"position":"10","server":"a"},"points_after":[)"
      R"({"position":"20","server":"b"},{"position":"10","server":"a"}],"walk":[)"
      R"({"position":"20","server":"b","address":"b:80","state":"active",)"
      R"("health":"down","requests_in_flight":3},)"
      R"({"position":"10","server":"a","address":"a:80","state":"active",)"
      R"("health":"up","requests_in_flight":0},)"
      R"({"position":null,"server":"c","address":"c:80","state":"draining",)"
      R"("health":"up","requests_in_flight":0}],"chosen":"a","reason":"failover"})");
  const json::object offline = to_json(pool, question, explain(pool, ring, question));
  EXPECT_EQ(offline.at("walk").at(0).at("health"), "unknown");
  EXPECT_TRUE(offline.at("walk").at(0).at("requests_in_flight").is_null());
}

}  // namespace
}  // namespace clockwise::upstream
