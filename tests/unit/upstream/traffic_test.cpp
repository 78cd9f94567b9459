// What the latest requests of a pool say about a change.
#include "upstream/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "support/pools.h"
#include "upstream/pool_key.h"

namespace clockwise::upstream {
namespace {

using http::CacheAnswer;
using test::BuiltPool;
using test::server;
using testing::DoubleEq;
using testing::Optional;

TEST(RecentRequests, KeepTheLatestTheOldestFirst) {
  RecentRequests requests;
  EXPECT_TRUE(requests.list().empty());
  for (std::uint64_t i = 0; i < RecentRequests::kKept + 10; ++i)
    requests.add({.position = i, .at = 2 * i, .answer = CacheAnswer::miss});
  const auto kept = requests.list();
  ASSERT_EQ(kept.size(), RecentRequests::kKept);
  EXPECT_EQ(kept.front().position, 10U);
  EXPECT_EQ(kept.front().at, 20U);
  EXPECT_EQ(kept.front().answer, CacheAnswer::miss);
  EXPECT_EQ(kept.back().position, RecentRequests::kKept + 9);
}

TEST(RecentRequests, MayBeReadWhileTheyAreWritten) {
  RecentRequests requests;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= 5 * RecentRequests::kKept; ++i)
      requests.add({.position = i, .at = 1'000 + i, .answer = CacheAnswer::hit});
  });
  std::size_t seen = 0;
  while (seen < RecentRequests::kKept) seen = requests.list().size();
  writer.join();
  EXPECT_EQ(requests.list().back().position, 5 * RecentRequests::kKept);
}

// Workers with a request each `every` milliseconds up to `now`, back to `since`.
void ask(RecentRequests& worker, SteadyMs since, SteadyMs now, SteadyMs every) {
  for (SteadyMs at = since; at < now; at += every) worker.add({.at = at});
}

TEST(Traffic, CountsTheRequestsOfTheLastMinute) {
  Recent recent(3);
  const SteadyMs start = recent.since;
  EXPECT_EQ(traffic_of(recent, start + 5'000).requests_per_second, std::nullopt);
  ask(recent.by_worker.at(0), start, start + 10'000, 100);
  ask(recent.by_worker.at(1), start, start + 10'000, 1'000);
  // For less than a minute: over the time there was.
  EXPECT_THAT(traffic_of(recent, start + 10'000).requests_per_second, Optional(DoubleEq(11)));
  EXPECT_THAT(traffic_of(recent, start + 20'000).requests_per_second, Optional(DoubleEq(5.5)));
  // The first five seconds are more than a minute ago.
  EXPECT_THAT(traffic_of(recent, start + 65'000).requests_per_second, Optional(DoubleEq(55. / 60)));
  EXPECT_THAT(traffic_of(recent, start + 600'000).requests_per_second, Optional(DoubleEq(0)));
}

TEST(Traffic, LooksAsFarBackAsTheRequestsThatAreKept) {
  Recent recent(1);
  const SteadyMs start = recent.since;
  ask(recent.by_worker.at(0), start, start + 20'000, 1);
  EXPECT_THAT(traffic_of(recent, start + 20'000).requests_per_second, Optional(DoubleEq(1000)));
}

TEST(Traffic, KnowsTheHitRatioOfWhatIsTold) {
  Recent recent(2);
  recent.by_worker.at(0).add({.answer = CacheAnswer::unknown});
  EXPECT_EQ(traffic_of(recent, steady_now()).hit_ratio, std::nullopt);
  for (int i = 0; i < 3; ++i) recent.by_worker.at(i % 2).add({.answer = CacheAnswer::hit});
  recent.by_worker.at(1).add({.answer = CacheAnswer::miss});
  EXPECT_THAT(traffic_of(recent, steady_now()).hit_ratio, Optional(DoubleEq(0.75)));
}

TEST(SeenKeys, AreThoseThatTheChangeGivesAnotherOwner) {
  const BuiltPool before{server("a"), server("b")}, after{server("b"), server("c"), server("a")};
  Recent recent(2);
  std::uint64_t to_c = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const ring::Position position = before.ring->hash("/item/" + std::to_string(i));
    recent.by_worker.at(i % 2).add({.position = position});
    to_c += after.ring->owner(position) == 1;
  }
  const auto seen = seen_keys(recent, before, after);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->total, 1000U);
  EXPECT_EQ(seen->moved, to_c);
  for (const KeyMove& move : seen->moves) EXPECT_EQ(move.to, "c");
  EXPECT_EQ(seen_keys(recent, before, before)->moved, 0U);
}

TEST(SamePositions, NeedsOneKeyAndOneHash) {
  const config::Pool base = [] {
    config::Pool pool = test::pool({server("a"), server("b")});
    pool.ring.key = "{uri:normalized}";
    pool.ring.key_ignore = {"a", "b"};
    return pool;
  }();
  const auto same_as_base = [&](auto change) {
    config::Pool pool = base;
    change(pool);
    const BuiltPool before(base), after(pool);
    return same_positions(before, after);
  };
  EXPECT_TRUE(same_as_base([](config::Pool& p) { p.servers.pop_back(); }));
  EXPECT_TRUE(same_as_base([](config::Pool& p) { p.ring.scheme.points = 10; }));
  EXPECT_FALSE(same_as_base([](config::Pool& p) { p.ring.key_ignore = {"b"}; }));
  EXPECT_FALSE(same_as_base([](config::Pool& p) { p.ring.key = "{uri}"; }));
  EXPECT_FALSE(same_as_base([](config::Pool& p) { p.ring.scheme.hash_tag = "{}"; }));
  EXPECT_FALSE(
      same_as_base([](config::Pool& p) { p.ring.scheme.placement = ring::Placement::ketama; }));
}

}  // namespace
}  // namespace clockwise::upstream
