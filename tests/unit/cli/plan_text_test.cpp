// The plan as a person reads it.
#include "cli/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace clockwise::cli
