#include "simulate/experiment.h"

#include <gmock/gmock.h>

#include <cmath>

#include "simulate/picture.h"
#include "simulate/summary.h"
#include "unit/simulate/support.h"

namespace clockwise::simulate {
namespace {

using testing::HasSubstr;
using testing::Not;

const Change kGrowth{nodes({"a", "b", "c", "d"}), nodes({"a", "b", "c", "d", "e"})};

TEST(Experiment, CountsEveryKeyOnce) {
  const Row row = row_of("clockwise", kGrowth, 12'345);
  EXPECT_EQ(row.keys, 12'345u);
  EXPECT_EQ(row.servers_before, 4u);
  EXPECT_EQ(row.servers_after, 5u);
  EXPECT_EQ(row.points, 1024u);
  std::uint64_t sum = 0;
  for (const auto& [name, count] : row.counts) sum += count;
  EXPECT_EQ(sum, 12'345u);
}

TEST(Experiment, OnARingAllThatMovesGoesToTheNewcomer) {
  const Row row = row_of("clockwise", kGrowth);
  EXPECT_EQ(row.moved, row.counts.back().second);
  EXPECT_EQ(row.needless, 0u);
  EXPECT_DOUBLE_EQ(row.minimum_ratio, 0.2);
}

TEST(Experiment, AChangedWeightMovesNothingNeedlessly) {
  const Row row = row_of("clockwise", {{{"a", 1}, {"b", 1}}, {{"a", 1}, {"b", 2}}});
  EXPECT_GT(row.moved, 0u);
  EXPECT_EQ(row.needless, 0u);
}

TEST(Experiment, WithoutAChangeNothingMoves) {
  const Row row = row_of("clockwise", {kGrowth.before, kGrowth.before});
  EXPECT_EQ(row.moved, 0u);
  EXPECT_EQ(row.minimum_ratio, 0);
}

TEST(Experiment, FiguresOfLoadsAreThoseOfTheirDefinition) {
  Row row;
  row.loads = {0.5, 1.0, 1.5};
  EXPECT_DOUBLE_EQ(row.max_over_mean(), 1.5);
  EXPECT_DOUBLE_EQ(row.max_over_min().value(), 3);
  EXPECT_DOUBLE_EQ(row.deviation_ratio(), std::sqrt(0.5 / 3));
  row.loads = {0, 2};
  EXPECT_EQ(row.max_over_min(), std::nullopt);
}

TEST(Experiment, LoadsAreJudgedByWeight) {
  const Nodes list{{"a", 1}, {"b", 3}, {"none", 0}};
  const Row row = row_of("clockwise", {list, list}, 50'000);
  ASSERT_EQ(row.loads.size(), 2u);
  EXPECT_NEAR(row.loads[0], 1, 0.15);
  EXPECT_NEAR(row.loads[1], 1, 0.15);
}

// Averaged over many lists, since one list is one draw.
TEST(Experiment, TheSpreadFollowsTheLaw) {
  for (const std::uint32_t points : {10u, 100u}) {
    Contestant ring = contestant("clockwise").value();
    ring.scheme.points = points;
    double squares = 0;
    constexpr int kLists = 40;
    for (int list = 0; list < kLists; ++list) {
      Nodes servers;
      for (int i = 0; i < 10; ++i) servers.push_back({std::to_string(list * 10 + i)});
      squares += std::pow(row_of(ring, {servers, servers}, 20'000).deviation_ratio(), 2);
    }
    const double measured = std::sqrt(squares / kLists);
    const double expected = expected_deviation(points, 10);
    EXPECT_NEAR(measured, expected, 0.15 * expected) << points;
    EXPECT_NEAR(expected, 1 / std::sqrt(points), 0.1 / std::sqrt(points));
  }
}

TEST(Experiment, ASweepIsForSchemesThatTakePoints) {
  const auto trials =
      sweep({contestant("modulo").value(), contestant("clockwise").value()}, {1, 10, 100}, kGrowth);
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_EQ(trials[3].contestant.scheme.points, 100u);
}

TEST(Experiment, ProgressIsToldInOrder) {
  std::vector<std::uint64_t> told;
  const Trial trial{contestant("slots").value(), kGrowth};
  ASSERT_TRUE(run(trial, keys(10'000), [&](std::uint64_t done) { told.push_back(done); }));
  EXPECT_GE(told.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_LT(told.back(), 10'000u);
}

TEST(Experiment, WhatASchemeCannotDoIsSaid) {
  const Trial trial{contestant("nginx").value(), {{{"a", 1.5}}, {{"a", 1.5}, {"b", 1}}}};
  const auto refused = run(trial, keys(1), [](std::uint64_t) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "nginx takes whole weights, a has 1.5");
}

TEST(Summary, SaysWhatChanged) {
  EXPECT_EQ(
      headline({nodes({"a", "b"}), nodes({"b", "c"})}, keys(10)),
      "10 keys, key:0 to key:9, on 2 servers, less a, plus c; at least 50.00 % must move.\n\n");
}

TEST(Summary, ShowsTheoryBesideTheMeasuredSpread) {
  const std::string text = summary(std::vector{row_of("clockwise", kGrowth)});
  EXPECT_THAT(text, HasSubstr("1/sqrt(V)"));
  EXPECT_THAT(text, HasSubstr("0.028       0.031\n"));  // sqrt(4/5121), 1/32
  EXPECT_THAT(text, HasSubstr("keys of     points      a"));
}

TEST(Summary, NamesTheLimitOfJumpOnlyWhereItShows) {
  const Row grown = row_of("jump", kGrowth);
  EXPECT_THAT(summary(std::vector{grown}), Not(HasSubstr("renumbers")));
  const Row cut = row_of("jump", {nodes({"a", "b", "c"}), nodes({"b", "c"})});
  EXPECT_THAT(summary(std::vector{cut}), HasSubstr("renumbers"));
}

TEST(Picture, DrawsADotForEachServerAndABarForEachScheme) {
  const std::string svg =
      picture(std::vector{row_of("slots", kGrowth), row_of("clockwise", kGrowth)});
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++dots;
  EXPECT_EQ(dots, 5u + 1u);  // and one in the legend
  EXPECT_THAT(svg, HasSubstr(">slots</text>"));
  EXPECT_THAT(svg, HasSubstr(">clockwise, 1024 points</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(Picture, ShowsOneChange) {
  const Row grown = row_of("clockwise", kGrowth);
  const Row still = row_of("nginx", {kGrowth.before, kGrowth.before});
  EXPECT_EQ(picture(std::vector{grown, still}), picture(std::vector{grown}));
}

TEST(Picture, WithoutARingHasNoPlotOfPoints) {
  EXPECT_THAT(picture(std::vector{row_of("slots", kGrowth)}), Not(HasSubstr("<circle")));
}

}  // namespace
}  // namespace clockwise::simulate
