// The plan as a person reads it.
#include "cli/plan_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/pools.h"

namespace clockwise::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using upstream::KeyCount;
using upstream::plan;
using upstream::Report;
using upstream::test::BuiltPool;
using upstream::test::server;

Report three_to_four() {
  const BuiltPool before{server("a"), server("b"), server("c")};
  const BuiltPool after{server("a"), server("b"), server("c"), server("d", 0.5)};
  return plan(before, after);
}

TEST(PlanText, ShowsSentenceServersAndMatrix) {
  const std::string text = plan_text(three_to_four(), false);
  EXPECT_THAT(text, AllOf(HasSubstr("pool pages: added d: "), HasSubstr("\n  server "),
                          HasSubstr("- -> 0.5"), HasSubstr("33.33 % -> 28.57 %"),
                          HasSubstr("\n  from \\ to ")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(text.back(), '\n');
}

TEST(PlanText, ColoursOnlyWhenAsked) {
  EXPECT_THAT(plan_text(three_to_four(), true), HasSubstr("\x1b[1mpool pages\x1b[0m"));
}

TEST(PlanText, OfNoChangeIsOneLine) {
  const BuiltPool same{server("a"), server("b")};
  EXPECT_EQ(plan_text(plan(same, same), false), "pool pages: no change\n");
}

TEST(PlanText, SaysThatNoKeyHasAnOwner) {
  const BuiltPool before{server("a"), server("b")}, after{server("a", 0), server("b", 0)};
  Report report = plan(before, after);
  report.keys = KeyCount{5000, 0, {}};
  report.cost = upstream::cost_of(report, 0.9, 2000);
  EXPECT_THAT(plan_text(report, false),
              AllOf(HasSubstr("no key has an owner any more\n"),
                    HasSubstr("none of your 5,000 keys has an owner\n"), Not(HasSubstr("moved")),
                    Not(HasSubstr("hit ratio"))));
}

TEST(PlanText, CountsTheKeys) {
  Report report = three_to_four();
  report.keys = KeyCount{200, 30, {{"a", "d", 18}, {"b", "d", 12}}};
  EXPECT_THAT(plan_text(report, false), HasSubstr("30 of 200 of your keys move (15.00 %)"));
  report.keys = KeyCount{};
  EXPECT_THAT(plan_text(report, false), HasSubstr("0 of 0 of your keys move (0.00 %)"));
}

TEST(PlanText, SaysWhatAGuardWouldRefuse) {
  const BuiltPool before{server("a"), server("b"), server("c")}, after{server("a")};
  EXPECT_THAT(plan_text(plan(before, after), false),
              HasSubstr("refused: 66.67 % of the servers are gone, max_shrink is 50.00 %"));
}

TEST(PlanText, ListsTheLargestMovesWhereAMatrixWouldBeTooWide) {
  config::Pool pool = upstream::test::pool({server("old")});
  config::Pool other = upstream::test::pool({});
  for (int i = 0; i < 30; ++i) other.servers.push_back(server("new-" + std::to_string(i)));
  EXPECT_THAT(plan_text(plan(BuiltPool{pool}, BuiltPool{other}), false),
              AllOf(HasSubstr("old -> new-"), HasSubstr("and 10 smaller moves")));
}

// A pool of many servers, one of them called "fresh" and new.
Report one_more_of(std::size_t count) {
  config::Pool pool = upstream::test::pool({});
  for (std::size_t i = 0; i < count; ++i) pool.servers.push_back(server(fmt::format("s{:04}", i)));
  pool.ring.scheme.points = 16;
  const BuiltPool before{pool};
  pool.servers.push_back(server("fresh"));
  return plan(before, BuiltPool{pool});
}

TEST(PlanText, OfALargePoolShowsWhatMattersMost) {
  const std::string text = plan_text(one_more_of(1000), false);
  EXPECT_THAT(text, AllOf(HasSubstr("\n  fresh "), HasSubstr("and 981 more servers; --json has")));
  EXPECT_LT(std::ranges::count(text, '\n'), 60);
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(end - at, 110u) << text.substr(at, end - at);
  }
}

TEST(PlanText, OfTheLargestPoolThatIsShownWholeHasEveryServer) {
  EXPECT_THAT(plan_text(one_more_of(39), false),
              AllOf(HasSubstr("s0038"), Not(HasSubstr("more servers"))));
}

TEST(PlanText, SaysWhatTheChangeCosts) {
  Report report = three_to_four();
  report.moved_ratio = 0.196;
  report.cost = upstream::cost_of(report, 0.9, 2000);
  EXPECT_THAT(plan_text(report, false),
              HasSubstr("at a hit ratio of 90 % and 2,000 requests/s: 353 more fetches per second "
                        "right after the change, 200 before\n"));
  report.cost = upstream::cost_of(report, 0.9, {});
  EXPECT_THAT(plan_text(report, false),
              HasSubstr("at a hit ratio of 90 %: 27.64 % of the requests are fetches right after "
                        "the change, 10.00 % before\n"));
  report.cost = upstream::cost_of(report, {}, 2000);
  EXPECT_THAT(plan_text(report, false), Not(HasSubstr("hit ratio")));
}

}  // namespace
}  // namespace clockwise::cli
