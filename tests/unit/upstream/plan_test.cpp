// The report on a change, checked against figures that are worked out in another way.
#include "upstream/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/pools.h"

namespace clockwise::upstream {
namespace {

using config::ServerState;
using test::BuiltPool;
using test::kNoPool;
using test::server;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ServerReport& of(const Report& report, std::string_view name) {
  for (const ServerReport& server : report.servers)
    if (server.name == name) return server;
  throw std::runtime_error("no such server in the report");
}

std::vector<std::string> names(const Report& report) {
  std::vector<std::string> found;
  for (const ServerReport& server : report.servers) found.push_back(server.name);
  return found;
}

TEST(Plan, AddingAServer) {
  const BuiltPool before{server("a"), server("b"), server("c"), server("d")};
  const BuiltPool after{server("e"), server("d"), server("c"), server("b"), server("a")};
  const Report report = plan(before, after);

  EXPECT_EQ(report.pool, "pages");
  EXPECT_EQ(report.scheme, "clockwise");
  EXPECT_TRUE(report.exact);
  EXPECT_TRUE(report.ring_changed());
  EXPECT_NEAR(report.minimum_ratio, 0.2, 1e-15);
  EXPECT_EQ(report.needless_ratio, 0);
  EXPECT_NEAR(report.moved_ratio, after.ring->shares()[0], 1e-12);
  EXPECT_EQ(report.moves.size(), 4u);
  EXPECT_THAT(names(report), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(report.shrink_ratio, 0);
  EXPECT_EQ(report.refused_by, Guard::none);

  const ServerReport& added = of(report, "e");
  EXPECT_THAT(added.changes, ElementsAre("added"));
  EXPECT_EQ(added.weight_before, std::nullopt);
  EXPECT_EQ(added.share_before, std::nullopt);
  EXPECT_EQ(added.expected_before, std::nullopt);
  EXPECT_EQ(added.address_before, std::nullopt);
  EXPECT_EQ(added.state_before, std::nullopt);
  EXPECT_EQ(added.address_after, "e:80");
  EXPECT_EQ(added.state_after, "active");
  EXPECT_NEAR(added.gained_ratio, report.moved_ratio, 1e-12);
  EXPECT_EQ(added.lost_ratio, 0);

  const ServerReport& kept = of(report, "a");
  EXPECT_THAT(kept.changes, IsEmpty());
  EXPECT_NEAR(*kept.expected_before, 0.25, 1e-15);
  EXPECT_NEAR(*kept.expected_after, 0.2, 1e-15);
  EXPECT_NEAR(*kept.share_before - kept.lost_ratio, *kept.share_after, 1e-12);
}

TEST(Plan, AgreesWithAnIndependentCountOfSampledKeys) {
  const BuiltPool before{server("a"), server("b", 2), server("c", 0.5), server("d")};
  const BuiltPool after{server("a"), server("b", 1), server("d"), server("e", 1.5)};
  const Report report = plan(before, after);
  std::map<std::pair<std::string, std::string>, double> sampled;
  std::mt19937_64 random(3);
  constexpr int kSamples = 200'000;
  double moved = 0;
  for (int i = 0; i < kSamples; ++i) {
    const ring::Position position = random();
    const std::string& from = before.pool.servers[before.ring->owner(position)].name;
    const std::string& to = after.pool.servers[after.ring->owner(position)].name;
    if (from == to) continue;
    moved += 1.0 / kSamples;
    sampled[{from, to}] += 1.0 / kSamples;
  }
  EXPECT_NEAR(report.moved_ratio, moved, 0.006);
  ASSERT_EQ(report.moves.size(), sampled.size());
  for (const ring::Move& move : report.moves)
    EXPECT_NEAR(move.ratio,
                (sampled[{report.servers[move.from].name, report.servers[move.to].name}]), 0.006);
  // Weights 4.5 before and after: a 1, b 2 -> 1, c 0.5 -> none, d 1, e none -> 1.5.
  EXPECT_NEAR(report.minimum_ratio, 1.5 / 4.5, 1e-12);
  EXPECT_EQ(report.needless_ratio, 0);
}

TEST(Plan, SumsOfLostAndGainedAreTheMovedShare) {
  const BuiltPool before{server("a", 3), server("b"), server("c")};
  const BuiltPool after{server("b", 2), server("c"), server("x"), server("y", 0.1)};
  const Report report = plan(before, after);
  double lost = 0, gained = 0, listed = 0;
  for (const ServerReport& s : report.servers) lost += s.lost_ratio, gained += s.gained_ratio;
  for (const ring::Move& move : report.moves) listed += move.ratio;
  EXPECT_NEAR(lost, report.moved_ratio, 1e-12);
  EXPECT_NEAR(gained, report.moved_ratio, 1e-12);
  EXPECT_NEAR(listed, report.moved_ratio, 1e-12);
}

TEST(Plan, DrainingCountsAsWeightZero) {
  const BuiltPool before{server("a"), server("b"), server("c")};
  const BuiltPool after{server("a"), server("b", 1, ServerState::draining), server("c")};
  const Report report = plan(before, after);
  const ServerReport& drained = of(report, "b");
  EXPECT_THAT(drained.changes, ElementsAre("state"));
  EXPECT_EQ(drained.weight_after, 1);
  EXPECT_EQ(drained.expected_after, 0);
  EXPECT_EQ(drained.share_after, 0);
  EXPECT_EQ(drained.state_after, "draining");
  EXPECT_NEAR(report.minimum_ratio, 1.0 / 3, 1e-12);
  EXPECT_EQ(report.needless_ratio, 0);
  EXPECT_NEAR(report.moved_ratio, before.ring->shares()[1], 1e-12);
  EXPECT_EQ(report.shrink_ratio, 0);
}

TEST(Plan, NeedlessMovesAreThoseBetweenServersThatStayTheSame) {
  config::Pool relabelled = test::pool({server("a"), server("b"), server("c", 2)});
  const BuiltPool before{relabelled};
  relabelled.servers[0].label = "another";
  relabelled.servers[2].weight = 3;
  const BuiltPool after{relabelled};
  const Report report = plan(before, after);
  double expected = 0;
  for (const ring::Move& move : report.moves)
    if (move.from != 2 && move.to != 2) expected += move.ratio;
  EXPECT_GT(expected, 0.05);
  EXPECT_NEAR(report.needless_ratio, expected, 1e-12);
}

TEST(Plan, MovesAreSortedByTheNamesOfTheServersTheyPointAt) {
  const BuiltPool before{server("d"), server("b"), server("a")};
  const BuiltPool after{server("c"), server("e"), server("b")};
  const Report report = plan(before, after);
  EXPECT_THAT(names(report), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_TRUE(std::ranges::is_sorted(
      report.moves, {}, [](const ring::Move& move) { return std::pair(move.from, move.to); }));
  for (const ring::Move& move : report.moves) {
    EXPECT_TRUE(report.servers[move.from].weight_before) << report.servers[move.from].name;
    EXPECT_TRUE(report.servers[move.to].weight_after) << report.servers[move.to].name;
  }
}

struct KeyChange {
  const char* name;
  const char* key_before;
  const char* key_after;
  bool other_ignored;
  const char* tag_after;
  bool exact;
};

TEST(Plan, IsAnEstimateOnlyWhereKeysAreMadeInAnotherWay) {
  const KeyChange rows[] = {
      {"nothing", "{uri}", "{uri}", false, "", true},
      {"another template", "{uri}", "{host}{uri}", false, "", false},
      {"another hash tag", "{uri}", "{uri}", false, "{}", false},
      {"other parameters ignored", "{uri:normalized}", "{uri:normalized}", true, "", false},
  };
  for (const KeyChange& row : rows) {
    config::Pool pool = test::pool({server("a"), server("b")});
    pool.ring.key = row.key_before;
    const BuiltPool before{pool};
    pool.ring.key = row.key_after;
    pool.ring.scheme.hash_tag = row.tag_after;
    if (row.other_ignored) pool.ring.key_ignore = {"utm_*"};
    const Report report = plan(before, BuiltPool{pool});
    EXPECT_EQ(report.exact, row.exact) << row.name;
    // Of two servers each keeps what it has by chance.
    EXPECT_NEAR(report.moved_ratio, row.exact ? 0 : 0.5, 0.01) << row.name;
    EXPECT_EQ(report.needless_ratio, report.moved_ratio) << row.name;
  }
}

TEST(Plan, OfAnotherNamespaceIsAnEstimate) {
  config::Pool pool = test::pool({server("a"), server("b")});
  const BuiltPool before{pool};
  pool.ring.scheme.key_namespace = "app:";
  EXPECT_FALSE(plan(before, BuiltPool{pool}).exact);
}

TEST(Plan, OfOtherPointsIsExact) {
  config::Pool pool = test::pool({server("a"), server("b")});
  const BuiltPool before{pool};
  pool.ring.scheme.points = 700;
  const Report report = plan(before, BuiltPool{pool});
  EXPECT_TRUE(report.exact);
  EXPECT_GT(report.moved_ratio, 0);
  EXPECT_EQ(report.needless_ratio, report.moved_ratio);
}

TEST(Cost, IsWhatWouldHaveBeenHits) {
  Report report;
  report.moved_ratio = 0.196;
  EXPECT_NEAR(*cost_of(report, 0.9, 2000).extra_fetches_per_second, 352.8, 1e-9);
  EXPECT_EQ(cost_of(report, 0.9, {}).extra_fetches_per_second, std::nullopt);
  EXPECT_EQ(cost_of(report, {}, 2000).extra_fetches_per_second, std::nullopt);
  EXPECT_EQ(cost_of(report, 0.9, {}).hit_ratio, 0.9);
}

TEST(Plan, ANewAddressMovesNothingButIsAChange) {
  const BuiltPool before{server("a"), server("b")};
  config::Pool moved = before.pool;
  moved.servers[1].address.text = "10.0.0.9:80";
  moved.servers[1].address.host = "10.0.0.9";
  const Report report = plan(before, BuiltPool{moved});
  EXPECT_FALSE(report.ring_changed());
  EXPECT_TRUE(report.changed());
  EXPECT_EQ(report.digest_before, report.digest_after);
  EXPECT_THAT(of(report, "b").changes, ElementsAre("address"));
  EXPECT_EQ(summary(report), "new address for b: no key moved");
}

TEST(Plan, TheSameListInAnotherOrderIsNoChange) {
  const BuiltPool before{server("a"), server("b")}, after{server("b"), server("a")};
  const Report report = plan(before, after);
  EXPECT_FALSE(report.changed());
  EXPECT_EQ(summary(report), "no change");
}

TEST(Plan, AnAbsentPoolIsNullOnItsSideAndMovesNothing) {
  const BuiltPool here{server("a"), server("b")};
  const Report fresh = plan(kNoPool, here);
  EXPECT_EQ(fresh.digest_before, std::nullopt);
  EXPECT_TRUE(fresh.digest_after.has_value());
  EXPECT_EQ(fresh.moved_ratio, 0);
  EXPECT_EQ(fresh.minimum_ratio, 0);
  EXPECT_EQ(fresh.refused_by, Guard::none);
  EXPECT_THAT(of(fresh, "a").changes, ElementsAre("added"));
  EXPECT_TRUE(fresh.changed());

  const Report gone = plan(here, kNoPool);
  EXPECT_EQ(gone.digest_after, std::nullopt);
  EXPECT_EQ(gone.shrink_ratio, 1);
  EXPECT_EQ(gone.refused_by, Guard::none);
}

struct GuardRow {
  const char* name;
  std::size_t kept;  // of 4 servers
  double max_remap, max_shrink;
  Guard expected;
};

TEST(Plan, GuardsRefuseOnlyWhatIsAboveTheirLimit) {
  const GuardRow rows[] = {
      {"half gone, limit half", 2, 1, 0.5, Guard::none},
      {"three quarters gone", 1, 1, 0.5, Guard::max_shrink},
      {"shrink is looked at first", 1, 0.1, 0.5, Guard::max_shrink},
      {"too much moves", 3, 0.1, 0.5, Guard::max_remap},
      {"nothing may move and nothing does", 4, 0, 0, Guard::none},
      {"everything allowed", 1, 1, 1, Guard::none},
  };
  const BuiltPool before{server("a"), server("b"), server("c"), server("d")};
  for (const GuardRow& row : rows) {
    config::Pool next = before.pool;
    next.servers.resize(row.kept);
    next.max_remap = row.max_remap;
    next.max_shrink = row.max_shrink;
    EXPECT_EQ(plan(before, BuiltPool{next}).refused_by, row.expected) << row.name;
  }
}

TEST(Plan, AMoveOfEverythingIsWithinALimitOfEverything) {
  config::Pool renamed = test::pool({server("x"), server("y"), server("z")});
  renamed.max_remap = renamed.max_shrink = 1;
  const Report report = plan(BuiltPool{server("a"), server("b"), server("c")}, BuiltPool{renamed});
  EXPECT_NEAR(report.moved_ratio, 1, 1e-12);
  EXPECT_LE(report.moved_ratio, 1);
  EXPECT_EQ(report.refused_by, Guard::none);
}

TEST(Cost, CountsWhatWasAskedForOnceThatIsEnough) {
  Report report;
  report.moved_ratio = 0.25;
  EXPECT_EQ(cost_of(report, 0.9, {}).extra_fetches_per_second, std::nullopt);
  EXPECT_EQ(cost_of(report, {}, 200).extra_fetches_per_second, std::nullopt);
  EXPECT_DOUBLE_EQ(*cost_of(report, 0.9, 200).extra_fetches_per_second, 45);
  report.seen_keys = KeyCount{.total = 999, .moved = 999, .moves = {}};
  EXPECT_DOUBLE_EQ(*cost_of(report, 0.9, 200).extra_fetches_per_second, 45);
  report.seen_keys = KeyCount{.total = 1000, .moved = 500, .moves = {}};
  EXPECT_DOUBLE_EQ(*cost_of(report, 0.9, 200).extra_fetches_per_second, 90);
}

TEST(BuildRing, LeavesServersOffTheRingInTheListWithoutPoints) {
  const BuiltPool built{server("a"), server("b", 1, ServerState::down), server("c", 0)};
  EXPECT_EQ(built.ring->points().size(), 1024u);
  EXPECT_THAT(built.ring->shares(), ElementsAre(1.0, 0.0, 0.0));
}

TEST(BuildRing, NamesThePoolInItsErrors) {
  config::Pool large = test::pool({server("a", 5000)});
  const auto refused = build_ring(large);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("pool pages: "));
  EXPECT_THAT(refused.error().message, HasSubstr("`points: 800` would fit"));
}

}  // namespace
}  // namespace clockwise::upstream
