// One sentence for the log, the demo and the answer of a reload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/pools.h"
#include "upstream/plan.h"

namespace clockwise::upstream {
namespace {

using config::ServerState;
using test::BuiltPool;
using test::server;
using testing::MatchesRegex;

TEST(Summary, OfAnAddedServer) {
  const BuiltPool before{server("cache-1"), server("cache-2"), server("cache-3"),
                         server("cache-4")};
  const BuiltPool after{server("cache-1"), server("cache-2"), server("cache-3"), server("cache-4"),
                        server("cache-5")};
  EXPECT_THAT(summary(plan(before, after)),
              MatchesRegex("added cache-5: [0-9]+\\.[0-9] % of the keys moved to it, minimum "
                           "20\\.0 %, 0 between other servers"));
}

TEST(Summary, OfRemovedServers) {
  const BuiltPool before{server("a"), server("b"), server("c"), server("d")};
  EXPECT_THAT(
      summary(plan(before, BuiltPool{server("a"), server("d")})),
      MatchesRegex("removed b, c: .* moved from them, minimum 50\\.0 %, 0 between other .*"));
}

TEST(Summary, OfWeightAndState) {
  const BuiltPool before{server("a"), server("b"), server("c")};
  const BuiltPool after{server("a", 2.5), server("b"), server("c", 1, ServerState::draining)};
  EXPECT_THAT(
      summary(plan(before, after)),
      MatchesRegex("weight of a from 1 to 2\\.5, c now draining: .* keys moved, minimum .*"));
}

TEST(Summary, OfManyServersCountsThem) {
  config::Pool large = test::pool({server("a")});
  const BuiltPool before{large};
  for (int i = 0; i < 20; ++i) large.servers.push_back(server("s" + std::to_string(i)));
  EXPECT_THAT(summary(plan(before, BuiltPool{large})), MatchesRegex("added 20 servers: .*"));
}

TEST(Summary, OfOtherRingSettings) {
  config::Pool pool = test::pool({server("a"), server("b")});
  const BuiltPool before{pool};
  pool.ring.scheme.points = 512;
  EXPECT_THAT(summary(plan(before, BuiltPool{pool})),
              MatchesRegex("new ring settings: .* minimum 0 %, [0-9.]+ % between other servers"));
}

TEST(Summary, OfAnEstimateSaysAbout) {
  config::Pool pool = test::pool({server("a"), server("b")});
  const BuiltPool before{pool};
  pool.ring.key = "{path}";
  EXPECT_THAT(summary(plan(before, BuiltPool{pool})),
              MatchesRegex("new ring settings: about [0-9.]+ % of the keys moved, .*"));
}

TEST(Summary, OfAVerySmallMoveDoesNotSayZero) {
  const BuiltPool before{server("a", 100), server("b", 100)};
  const BuiltPool after{server("a", 100), server("b", 100), server("c", 0.01)};
  EXPECT_THAT(summary(plan(before, after)), MatchesRegex("added c: 0\\.00[0-9]+ % of .*"));
}

TEST(GuardReason, NamesTheLimitAndWhatIsAboveIt) {
  Report report;
  report.pool = "pages";
  report.moved_ratio = 0.831;
  report.max_remap = 0.6;
  report.refused_by = Guard::max_remap;
  EXPECT_EQ(guard_reason(report), "pool pages: 83.1 % of the keys would move, max_remap is 60.0 %");
  report.shrink_ratio = 0.75;
  report.max_shrink = 0.5;
  report.refused_by = Guard::max_shrink;
  EXPECT_EQ(guard_reason(report),
            "pool pages: 75.0 % of the servers would leave, max_shrink is 50.0 %");
}

TEST(Summary, OfKeysWithoutAnOwner) {
  config::Server down = server("a");
  down.state = config::ServerState::down;
  const BuiltPool up{server("a")}, none{down}, moved{server("a", 0)};
  EXPECT_EQ(summary(plan(up, none)), "a now down: no key has an owner any more");
  EXPECT_EQ(summary(plan(none, up)), "a now active: every key has an owner, none had one before");
  EXPECT_EQ(summary(plan(up, moved)), "weight of a from 1 to 0: no key has an owner any more");
  EXPECT_EQ(summary(plan(none, none)), "no change");
  const BuiltPool added{server("a"), server("b")};
  EXPECT_EQ(summary(plan({nullptr, nullptr}, added)),
            "added a, b: every key has an owner, none had one before");
  EXPECT_EQ(summary(plan(added, {nullptr, nullptr})), "removed a, b: no key has an owner any more");
}

}  // namespace
}  // namespace clockwise::upstream
