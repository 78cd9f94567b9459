// The remap account against slower ways to the same figures.
#include "ring/remap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "ring/circle.h"
#include "support/rings.h"

namespace clockwise::ring {
namespace {

using test::equal_ring;
using test::NamedRing;
using test::ring_of;
using Matrix = std::map<std::pair<std::string, std::string>, double>;

Position hash_nothing(std::string_view) noexcept { return 0; }

// A ring whose points the test places itself.
class PlacedRing {
 public:
  PlacedRing(std::vector<Point> points, std::size_t servers)
      : ring_({CircleRing::hash_with<hash_nothing>, "none", 64, {}}, Rule::successor,
              CircleRing::Ties::by_order, std::move(points), servers) {}
  ServerIndex owner(Position position) const { return ring_.owner(position); }
  const Ring* operator&() const { return &ring_; }

 private:
  CircleRing ring_;
};

const std::vector<std::string> kNames{"a", "b", "c", "d"};

Matrix as_matrix(const std::vector<Move>& moves) {
  Matrix matrix;
  for (const Move& move : moves) matrix[{move.from, move.to}] += move.ratio;
  return matrix;
}

std::vector<Move> moves(const NamedRing& before, const NamedRing& after) {
  return moved_arcs({before.ring.get(), before.names}, {after.ring.get(), after.names});
}

// Points on a circle cut into 64 cells: the brute-force count asks each cell.
constexpr Position kCell = Position{1} << 58;

std::vector<Point> any_points() {
  std::vector<Point> points;
  const auto cells = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<Position>>(rc::gen::inRange<Position>(0, 64)));
  for (const Position cell : cells)
    points.push_back({(cell + 1) * kCell - 1, *rc::gen::inRange<ServerIndex>(0, 4)});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.position, a.server) < std::tie(b.position, b.server);
  });
  return points;
}

RC_GTEST_PROP(Remap, EqualsACountOfEveryCell, ()) {
  const PlacedRing before(any_points(), 4), after(any_points(), 4);
  Matrix expected;
  for (Position cell = 0; cell < 64; ++cell) {
    const std::string& from = kNames[before.owner(cell * kCell)];
    const std::string& to = kNames[after.owner(cell * kCell)];
    if (from != to) expected[{from, to}] += 1.0 / 64;
  }
  RC_ASSERT(as_matrix(moved_arcs({&before, kNames}, {&after, kNames})) == expected);
}

TEST(Remap, EqualsWhatSamplingFinds) {
  const NamedRing before = ring_of({{"a", 1}, {"b", 2}, {"c", 1}, {"d", 0.5}});
  const NamedRing after = ring_of({{"e", 1.5}, {"a", 1}, {"b", 1}, {"d", 0.5}});
  const Matrix exact = as_matrix(moves(before, after));
  Matrix sampled;
  std::mt19937_64 random(7);
  constexpr int kSamples = 400'000;
  for (int i = 0; i < kSamples; ++i) {
    const Position position = random();
    if (before.owner(position) != after.owner(position))
      sampled[{before.owner(position), after.owner(position)}] += 1.0 / kSamples;
  }
  ASSERT_EQ(sampled.size(), exact.size());
  for (const auto& [pair, ratio] : exact)
    EXPECT_NEAR(sampled[pair], ratio, 5 * std::sqrt(ratio / kSamples)) << pair.first << pair.second;
}

TEST(Remap, ExplainsEveryDifferenceOfShares) {
  const NamedRing before = ring_of({{"a", 1}, {"b", 2}, {"c", 1}});
  const NamedRing after = ring_of({{"a", 2}, {"c", 1}, {"b", 1.5}, {"d", 1}});
  std::map<std::string, double> balance;
  for (std::size_t i = 0; i < 3; ++i) balance[before.names[i]] += before.ring->shares()[i];
  for (std::size_t i = 0; i < 4; ++i) balance[after.names[i]] -= after.ring->shares()[i];
  for (const Move& move : moves(before, after)) {
    balance[move.from] -= move.ratio;
    balance[move.to] += move.ratio;
  }
  for (const auto& [name, left] : balance) EXPECT_NEAR(left, 0, 1e-12) << name;
}

TEST(Remap, IsSortedAndHasNoEmptyEntry) {
  const NamedRing before = equal_ring({"d", "b", "a", "c"}), after = equal_ring({"c", "x", "e"});
  const std::vector<Move> found = moves(before, after);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), [](const Move& a, const Move& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  }));
  for (const Move& move : found) {
    EXPECT_GT(move.ratio, 0);
    EXPECT_NE(move.from, move.to);
  }
}

TEST(Remap, OfEqualRingsIsEmpty) {
  EXPECT_TRUE(moves(equal_ring({"a", "b"}), equal_ring({"b", "a"})).empty());
}

TEST(Remap, AnotherOwnerOfEverythingMovesTheWholeCircle) {
  const std::vector<Move> found = moves(equal_ring({"a"}), equal_ring({"b"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ratio, 1.0);
}

TEST(Remap, ASideWithoutAnOwnerMovesNothing) {
  const NamedRing full = equal_ring({"a"}), empty = ring_of({{"a", 0}});
  EXPECT_TRUE(moves(full, empty).empty());
  EXPECT_TRUE(moves(empty, full).empty());
  EXPECT_TRUE(moved_arcs({}, {full.ring.get(), full.names}).empty());
  EXPECT_TRUE(moved_arcs({full.ring.get(), full.names}, {}).empty());
}

TEST(Remap, OfPointsAtOnePlaceOnlyTheFirstCounts) {
  const Position middle = (Position{1} << 63) - 1, top = ~Position{0};
  const PlacedRing before({{middle, 0}, {middle, 1}, {top, 2}}, 4);
  const PlacedRing after({{middle, 0}, {top, 2}, {top, 3}}, 4);
  EXPECT_TRUE(moved_arcs({&before, kNames}, {&after, kNames}).empty());
  const PlacedRing swapped({{middle, 1}, {middle, 0}, {top, 2}}, 4);
  const std::vector<Move> found = moved_arcs({&before, kNames}, {&swapped, kNames});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from + found[0].to, "ab");
  EXPECT_EQ(found[0].ratio, 0.5);
}

TEST(Remap, FoldsMoreArcsThanItHoldsAtOnce) {
  std::vector<Member> old_members, new_members;
  for (int i = 0; i < 100; ++i) {
    old_members.push_back({"old-" + std::to_string(i), 1});
    new_members.push_back({"new-" + std::to_string(i), 1});
  }
  double sum = 0;
  const std::vector<Move> found = moves(ring_of(old_members), ring_of(new_members));
  for (const Move& move : found) sum += move.ratio;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(as_matrix(found).size(), found.size());
}

}  // namespace
}  // namespace clockwise::ring
