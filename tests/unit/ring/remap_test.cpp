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
#include "ring/table.h"
#include "support/rings.h"

namespace clockwise::ring {
namespace {

using test::equal_ring;
using test::in_words;
using test::moves;
using test::NamedMove;
using test::NamedRing;
using test::ring_of;
using Matrix = std::map<std::pair<std::string, std::string>, double>;

Position hash_nothing(std::string_view) noexcept { return 0; }

// A ring whose points the test places itself.
class PlacedRing {
 public:
  PlacedRing(Points points, std::size_t servers)
      : ring_({CircleRing::hash_with<hash_nothing>, "none", 64, {}}, Rule::successor,
              CircleRing::Ties::by_order, std::move(points), servers) {}
  ServerIndex owner(Position position) const { return ring_.owner(position); }
  const Ring* operator&() const { return &ring_; }

 private:
  CircleRing ring_;
};

const std::vector<std::string> kNames{"a", "b", "c", "d"};

Matrix as_matrix(const std::vector<NamedMove>& moves) {
  Matrix matrix;
  for (const NamedMove& move : moves) matrix[{move.from, move.to}] += move.ratio;
  return matrix;
}

std::vector<NamedMove> moves(const Ring* before, const Ring* after) {
  return in_words(compare({before, kNames}, {after, kNames}), kNames, kNames);
}

// Points on a circle cut into 64 cells: the brute-force count asks each cell.
constexpr Position kCell = Position{1} << 58;

Points any_points() {
  Points points;
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
  RC_ASSERT(as_matrix(moves(&before, &after)) == expected);
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
  for (const NamedMove& move : moves(before, after)) {
    balance[move.from] -= move.ratio;
    balance[move.to] += move.ratio;
  }
  for (const auto& [name, left] : balance) EXPECT_NEAR(left, 0, 1e-12) << name;
}

TEST(Remap, IsSortedAndHasNoEmptyEntry) {
  const NamedRing before = equal_ring({"d", "b", "a", "c"}), after = equal_ring({"c", "x", "e"});
  const std::vector<NamedMove> found = moves(before, after);
  EXPECT_TRUE(
      std::is_sorted(found.begin(), found.end(), [](const NamedMove& a, const NamedMove& b) {
        return std::tie(a.from, a.to) < std::tie(b.from, b.to);
      }));
  for (const NamedMove& move : found) {
    EXPECT_GT(move.ratio, 0);
    EXPECT_NE(move.from, move.to);
  }
}

TEST(Remap, OfEqualRingsIsEmpty) {
  EXPECT_TRUE(moves(equal_ring({"a", "b"}), equal_ring({"b", "a"})).empty());
}

TEST(Remap, AnotherOwnerOfEverythingMovesTheWholeCircle) {
  const std::vector<NamedMove> found = moves(equal_ring({"a"}), equal_ring({"b"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ratio, 1.0);
}

TEST(Remap, ASideWithoutAnOwnerMovesNothing) {
  const NamedRing full = equal_ring({"a"}), empty = ring_of({{"a", 0}});
  EXPECT_TRUE(moves(full, empty).empty());
  EXPECT_TRUE(moves(empty, full).empty());
  EXPECT_TRUE(compare({}, {full.ring.get(), full.names}).moves.empty());
  EXPECT_TRUE(compare({full.ring.get(), full.names}, {}).moves.empty());
}

TEST(Remap, OfPointsAtOnePlaceOnlyTheFirstCounts) {
  const Position middle = (Position{1} << 63) - 1, top = ~Position{0};
  const PlacedRing before({{middle, 0}, {middle, 1}, {top, 2}}, 4);
  const PlacedRing after({{middle, 0}, {top, 2}, {top, 3}}, 4);
  EXPECT_TRUE(moves(&before, &after).empty());
  const PlacedRing swapped({{middle, 1}, {middle, 0}, {top, 2}}, 4);
  const std::vector<NamedMove> found = moves(&before, &swapped);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from + found[0].to, "ab");
  EXPECT_EQ(found[0].ratio, 0.5);
}

TEST(Remap, OfAllServersReplacedHasAPairForEachTwoOfThem) {
  std::vector<Member> old_members, new_members;
  for (int i = 0; i < 100; ++i) {
    old_members.push_back({"old-" + std::to_string(i), 1});
    new_members.push_back({"new-" + std::to_string(i), 1});
  }
  double sum = 0;
  const std::vector<NamedMove> found = moves(ring_of(old_members), ring_of(new_members));
  for (const NamedMove& move : found) sum += move.ratio;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(as_matrix(found).size(), found.size());
}

TEST(Remap, OfManyServersAndFewMovesEqualsTheWayOfManyMoves) {
  // One server of 100 renamed leaves few pieces; all renamed leaves one for nearly every pair.
  std::vector<Member> members, renamed;
  for (int i = 0; i < 100; ++i) members.push_back({"s" + std::to_string(100 + i), 1});
  renamed = members;
  renamed[7].label = "other";
  const NamedRing before = ring_of(members, 16), after = ring_of(renamed, 16);
  const std::vector<NamedMove> found = moves(before, after);
  EXPECT_TRUE(
      std::is_sorted(found.begin(), found.end(), [](const NamedMove& a, const NamedMove& b) {
        return std::tie(a.from, a.to) < std::tie(b.from, b.to);
      }));
  double lost = 0, gained = 0;
  for (const NamedMove& move : found) {
    EXPECT_TRUE(move.from == "s107" || move.to == "other") << move.from << move.to;
    lost += move.from == "s107" ? move.ratio : 0;
    gained += move.to == "other" ? move.ratio : 0;
  }
  EXPECT_NEAR(lost, before.ring->shares()[7], 1e-12);
  EXPECT_NEAR(gained, after.ring->shares()[7], 1e-12);
}

Position hash_of_decimal(const Ring&, std::string_view key) noexcept {
  Position position = 0;
  for (const char digit : key) position = position * 31 + static_cast<unsigned char>(digit);
  return position;
}

TableRing table(std::vector<ServerIndex> slots, Arc positions, const std::string& hash = "h") {
  return TableRing({hash_of_decimal, hash, positions, {}}, std::move(slots), 4, true);
}

std::vector<ServerIndex> any_slots() {
  return *rc::gen::nonEmpty(
      rc::gen::container<std::vector<ServerIndex>>(rc::gen::inRange<ServerIndex>(0, 4)));
}

RC_GTEST_PROP(Remap, OfTablesEqualsACountOfEveryPosition, ()) {
  const int positions = *rc::gen::inRange(1, 5000);
  const TableRing before = table(any_slots(), static_cast<Arc>(positions));
  const TableRing after = table(any_slots(), static_cast<Arc>(positions));
  std::map<std::pair<std::string, std::string>, int> counts;
  for (Position p = 0; p < static_cast<Position>(positions); ++p)
    if (before.owner(p) != after.owner(p))
      ++counts[{kNames[before.owner(p)], kNames[after.owner(p)]}];
  Matrix expected;
  for (const auto& [pair, count] : counts) expected[pair] = double(count) / positions;
  RC_ASSERT(compare({&before, kNames}, {&after, kNames}).exact);
  RC_ASSERT(as_matrix(moves(&before, &after)) == expected);
}

TEST(Remap, OfTablesKnowsThatTheLastRoundMayBeShort) {
  // 2^64 = 1 (mod 3): slot 0 has one position more than the others.
  const TableRing before = table({0, 1, 2}, kWholeCircle), after = table({3, 1, 2}, kWholeCircle);
  const std::vector<NamedMove> found = moves(&before, &after);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from + found[0].to, "ad");
  EXPECT_EQ(found[0].ratio, share_of((kWholeCircle - 1) / 3 + 1));
}

struct EstimateRow {
  const char* name;
  const Ring* before;
  const Ring* after;
  Keys keys;
};

TEST(Remap, IsAnEstimateWherePositionsCannotBeCompared) {
  const NamedRing circle = equal_ring({"a", "b", "c", "d"});
  const TableRing one = table({0, 1, 2, 3}, kWholeCircle);
  const TableRing other_hash = table({0, 1, 2, 3}, kWholeCircle, "g");
  // 4099 and 4111 are primes: together they repeat after 16.9 million slots.
  std::vector<ServerIndex> slots(4099), more(4111);
  for (std::size_t i = 0; i < more.size(); ++i) more[i] = static_cast<ServerIndex>(i % 4);
  std::copy_n(more.begin(), slots.size(), slots.begin());
  const TableRing long_period = table(slots, kWholeCircle), longer = table(more, kWholeCircle);
  const EstimateRow rows[] = {
      {"a circle against a table", circle.ring.get(), &one, Keys::same},
      {"another hash", &one, &other_hash, Keys::same},
      {"a long common period", &long_period, &longer, Keys::same},
      {"another key on the same ring", circle.ring.get(), circle.ring.get(), Keys::other},
  };
  for (const EstimateRow& row : rows) {
    const RingView before{row.before, kNames}, after{row.after, kNames};
    const Account account = compare(before, after, row.keys);
    EXPECT_FALSE(account.exact) << row.name;
    EXPECT_EQ(account.moves, compare(before, after, row.keys).moves) << row.name;
  }
}

TEST(Remap, OfAnotherKeyMovesAllButWhatStaysByChance) {
  const NamedRing ring = equal_ring({"a", "b", "c", "d"});
  const std::span<const double> shares = ring.ring->shares();
  const RingView view{ring.ring.get(), ring.names};
  const Account account = compare(view, view, Keys::other);
  EXPECT_EQ(account.moves.size(), 12u);
  for (const Move& move : account.moves)
    EXPECT_NEAR(move.ratio, shares[move.from] * shares[move.to], 0.002);
}

TEST(Remap, EstimatesTheFiguresThatAnExactAccountHas) {
  const NamedRing before = equal_ring({"a", "b", "c"}), after = equal_ring({"a", "b", "d"});
  const Matrix exact = as_matrix(moves(before, after));
  const NamedRing tagged = [] {
    NamedRing ring{{"a", "b", "d"}, nullptr};
    ring.ring = build({.hash_tag = "{}"}, std::vector<Member>{{"a"}, {"b"}, {"d"}}).value();
    return ring;
  }();
  // No sampled key has a brace, so the tag changes nothing but the way it is compared.
  const Account estimate =
      compare({before.ring.get(), before.names}, {tagged.ring.get(), tagged.names});
  EXPECT_FALSE(estimate.exact);
  const Matrix sampled = as_matrix(in_words(estimate, before.names, tagged.names));
  ASSERT_EQ(sampled.size(), exact.size());
  for (const auto& [pair, ratio] : exact) EXPECT_NEAR(sampled.at(pair), ratio, 0.003);
}

}  // namespace
}  // namespace clockwise::ring
