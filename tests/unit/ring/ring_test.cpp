// The default scheme: what happens at every edge.
#include "ring/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/rings.h"

namespace clockwise::ring {
namespace {

using test::equal_ring;
using test::NamedRing;
using test::ring_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Position kTop = ~Position{0};

TEST(ClockwiseRing, HashesPublishedValuesOfXxh64) {
  const NamedRing ring = equal_ring({"a"});
  EXPECT_EQ(ring.ring->hash(""), 0xef46db3751d8e999u);
  EXPECT_EQ(ring.ring->hash("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(ring.ring->hash("abc"), 0x44bc2cf5ad770999u);
}

TEST(ClockwiseRing, HasItsPointsAtTheHashOfLabelAndNumber) {
  const NamedRing ring = equal_ring({"cache-1"}, 3);
  std::vector<Position> expected;
  for (const char* text : {"cache-1-0", "cache-1-1", "cache-1-2"})
    expected.push_back(ring.ring->hash(text));
  std::sort(expected.begin(), expected.end());
  std::vector<Position> found;
  for (const Point& point : ring.ring->points()) found.push_back(point.position);
  EXPECT_EQ(found, expected);
}

TEST(ClockwiseRing, WithoutServersIsEmpty) {
  const auto ring = build({.points = 1024}, {}).value();
  EXPECT_TRUE(ring->empty());
  EXPECT_TRUE(ring->shares().empty());
  EXPECT_EQ(ring->successor(0, {}), std::nullopt);
}

TEST(ClockwiseRing, OfWeightZeroOnlyIsEmptyAndSharesAreZero) {
  const NamedRing ring = ring_of({{"a", 0}, {"b", 0}});
  EXPECT_TRUE(ring.ring->empty());
  EXPECT_THAT(ring.ring->shares(), ElementsAre(0.0, 0.0));
  EXPECT_EQ(ring.ring->successor(kTop, {}), std::nullopt);
}

TEST(ClockwiseRing, OneServerOwnsTheWholeCircle) {
  for (const std::uint32_t points : {1u, 2u, 1024u}) {
    const NamedRing ring = equal_ring({"only"}, points);
    EXPECT_THAT(ring.ring->shares(), ElementsAre(1.0));
    for (const Position position : {Position{0}, kTop / 2, kTop}) {
      EXPECT_EQ(ring.ring->owner(position), 0u);
      EXPECT_EQ(ring.ring->successor(position, {})->server, 0u);
    }
  }
}

TEST(ClockwiseRing, AKeyBelongsToTheFirstPointAtOrAfterItAndWrapsAtTheTop) {
  const NamedRing ring = equal_ring({"a", "b", "c"}, 7);
  const std::span<const Point> points = ring.ring->points();
  ASSERT_EQ(points.size(), 21u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& next = points[(i + 1) % points.size()];
    EXPECT_EQ(ring.ring->owner(points[i].position), points[i].server) << "exact hit";
    EXPECT_EQ(ring.ring->owner(points[i].position + 1), next.server) << "just behind";
  }
  EXPECT_EQ(ring.ring->owner(0), points.front().server);
  EXPECT_EQ(ring.ring->owner(kTop), points.front().server);
}

TEST(ClockwiseRing, SuccessorWalksToTheNextServerThatIsNotExcluded) {
  const NamedRing ring = equal_ring({"a", "b", "c", "d"}, 16);
  const Position position = ring.ring->hash("/some/key");
  std::vector<ServerIndex> seen;
  while (const auto next = ring.ring->successor(position, seen)) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), next->server), 0);
    seen.push_back(next->server);
  }
  EXPECT_EQ(seen.front(), ring.ring->owner(position));
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(0u, 1u, 2u, 3u));
}

TEST(ClockwiseRing, SuccessorWrapsAndCountsOnlyServersWithPoints) {
  const NamedRing ring = ring_of({{"a", 1}, {"off", 0}, {"b", 1}}, 8);
  const Position behind_all = ring.ring->points().back().position + 1;
  const ServerIndex first = ring.ring->points().front().server;
  EXPECT_EQ(ring.ring->successor(behind_all, {})->server, first);
  const std::vector<ServerIndex> a_and_off{0, 1, 1, 0, 77};
  EXPECT_EQ(ring.ring->successor(behind_all, a_and_off)->server, 2u);
  const std::vector<ServerIndex> both{0, 2};
  EXPECT_EQ(ring.ring->successor(behind_all, both), std::nullopt);
}

TEST(ClockwiseRing, SuccessorAsksForThoseOnTheWayOnly) {
  const NamedRing ring = equal_ring({"a", "b", "c", "d"}, 1024);
  std::size_t asked = 0;
  const auto all_but_c = [&](ServerIndex server) {
    ++asked;
    return server != 2;
  };
  EXPECT_EQ(ring.ring->successor(ring.ring->hash("/key"), all_but_c)->server, 2u);
  EXPECT_LT(asked, 100u);
  asked = 0;
  const auto all = [&](ServerIndex) {
    ++asked;
    return true;
  };
  EXPECT_EQ(ring.ring->successor(ring.ring->hash("/key"), all), std::nullopt);
  EXPECT_LT(asked, 300u) << "of 4096 points";
}

TEST(ClockwiseRing, OfPointsAtOnePlaceTheSmallerLabelOwnsIt) {
  // Equal positions of different labels do not occur in practice, so the tie is made with labels
  // that are equal: the whole rings coincide and the earlier one owns all of it.
  const NamedRing ring = ring_of({{"z", 1}, {"a", 1}, {"a", 2}}, 32);
  std::size_t ties = 0;
  const std::span<const Point> points = ring.ring->points();
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i - 1].position != points[i].position) continue;
    ++ties;
    EXPECT_EQ(points[i - 1].server, 1u);
    EXPECT_EQ(points[i].server, 2u);
    EXPECT_EQ(ring.ring->owner(points[i].position), 1u);
  }
  EXPECT_EQ(ties, 32u);
}

struct CountRow {
  const char* name;
  double weight;
  std::uint32_t points_per_weight;
  std::size_t points;
};

TEST(ClockwiseRing, CountsPointsByWeight) {
  const CountRow rows[] = {
      {"one", 1, 1024, 1024},           {"fraction", 1.5, 1024, 1536},
      {"rounds down", 0.3333, 100, 33}, {"rounds half up", 0.005, 100, 1},
      {"half up above one", 2.5, 1, 3}, {"tiny has none", 0.0004, 1024, 0},
      {"zero has none", 0, 1024, 0},    {"large", 900, 1024, 921'600},
  };
  for (const CountRow& row : rows) {
    const NamedRing ring = ring_of({{"s", row.weight}}, row.points_per_weight);
    EXPECT_EQ(ring.ring->points().size(), row.points) << row.name;
  }
}

TEST(ClockwiseRing, RefusesTooManyPointsAndNamesTheNumberThatFits) {
  const std::vector<Member> members{{"a", 1000}, {"b", 3000.4}};
  const auto refused = build({.points = 1024}, members);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("4096410 points"));
  EXPECT_THAT(refused.error().message, HasSubstr("at most 4000000"));
  EXPECT_THAT(refused.error().message, HasSubstr("`points: 999` would fit"));
  EXPECT_TRUE(build({.points = 999}, members).has_value());
  EXPECT_FALSE(build({.points = 1000}, members).has_value());
}

TEST(ClockwiseRing, TheLimitItselfIsAllowed) {
  const std::vector<Member> members{{"a", 1}, {"b", 1}};
  EXPECT_TRUE(build({.points = 50}, members, 100).has_value());
  EXPECT_FALSE(build({.points = 51}, members, 100).has_value());
}

TEST(ClockwiseRing, SaysSoWhenEvenOnePointPerWeightIsTooMany) {
  const std::vector<Member> members(500, {"a", 10'000});
  const auto refused = build({.points = 1024}, members);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("lower the weights"));
}

}  // namespace
}  // namespace clockwise::ring
