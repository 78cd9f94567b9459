// Laws of consistent hashing, checked on random lists of servers.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

#include "ring/remap.h"
#include "ring/ring.h"
#include "support/rings.h"

namespace clockwise::ring {
namespace {

using test::equal_ring;
using test::moves;
using test::NamedMove;
using test::NamedRing;
using test::ring_of;

constexpr std::uint32_t kPoints = 32;

// 1 to 12 servers of distinct names, weights in steps of a quarter from 0 to 4.
std::vector<Member> any_members() {
  const auto numbers = *rc::gen::resize(
      12, rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 1000))));
  std::vector<Member> members;
  for (const int number : numbers)
    members.push_back({"s" + std::to_string(number), *rc::gen::inRange(0, 17) / 4.0});
  return members;
}

RC_GTEST_PROP(RingLaw, AddingAServerMovesKeysToItAlone, ()) {
  const std::vector<Member> members = any_members();
  std::vector<Member> more = members;
  more.insert(more.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(members) + 1),
              {"fresh", *rc::gen::inRange(1, 17) / 4.0});
  for (const NamedMove& move : moves(ring_of(members, kPoints), ring_of(more, kPoints)))
    RC_ASSERT(move.to == "fresh");
}

RC_GTEST_PROP(RingLaw, RemovingAServerMovesItsKeysAlone, ()) {
  std::vector<Member> members = any_members();
  const NamedRing before = ring_of(members, kPoints);
  const auto gone = members.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(members));
  const std::string name = gone->label;
  members.erase(gone);
  for (const NamedMove& move : moves(before, ring_of(members, kPoints)))
    RC_ASSERT(move.from == name);
}

RC_GTEST_PROP(RingLaw, AWeightMovesKeysOneWayOnly, ()) {
  std::vector<Member> members = any_members();
  const NamedRing before = ring_of(members, kPoints);
  Member& changed = members[*rc::gen::inRange<std::size_t>(0, members.size())];
  const double old_weight = std::exchange(changed.weight, *rc::gen::inRange(0, 17) / 4.0);
  for (const NamedMove& move : moves(before, ring_of(members, kPoints)))
    RC_ASSERT((changed.weight > old_weight ? move.to : move.from) == changed.label);
}

RC_GTEST_PROP(RingLaw, TheOrderOfTheListDoesNotMatter, ()) {
  const std::vector<Member> members = any_members();
  std::vector<Member> shuffled = members;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(*rc::gen::arbitrary<unsigned>()));
  const NamedRing one = ring_of(members, kPoints), other = ring_of(shuffled, kPoints);
  RC_ASSERT(moves(one, other).empty());
  if (one.ring->empty()) return;
  const auto position = *rc::gen::arbitrary<Position>();
  RC_ASSERT(one.owner(position) == other.owner(position));
}

RC_GTEST_PROP(RingLaw, TheIndexFindsWhatALinearSearchFinds, ()) {
  const NamedRing ring = ring_of(any_members(), *rc::gen::inRange(1u, 300u));
  RC_PRE(!ring.ring->empty());
  const std::span<const Point> points = ring.ring->points();
  RC_ASSERT(std::is_sorted(points.begin(), points.end(),
                           [](const Point& a, const Point& b) { return a.position < b.position; }));
  const auto base =
      *rc::gen::oneOf(rc::gen::arbitrary<Position>(),
                      rc::gen::map(rc::gen::inRange<std::size_t>(0, points.size()),
                                   [&](std::size_t i) { return points[i].position; }));
  for (const Position position : {base - 1, base, base + 1}) {
    const auto found = std::find_if(points.begin(), points.end(),
                                    [&](const Point& point) { return point.position >= position; });
    const ServerIndex expected = found == points.end() ? points.front().server : found->server;
    RC_ASSERT(ring.ring->owner(position) == expected);
    RC_ASSERT(ring.ring->successor(position, {})->server == expected);
  }
}

RC_GTEST_PROP(RingLaw, SharesAddUpToOne, ()) {
  const NamedRing ring = ring_of(any_members(), kPoints);
  const std::span<const double> shares = ring.ring->shares();
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  RC_ASSERT(std::abs(sum - (ring.ring->empty() ? 0 : 1)) < 1e-12);
}

// With V points a server the spread of a share around its mean is sqrt((N-1)/(N V + 1)).
TEST(RingLaw, SharesSpreadAsTheorySays) {
  for (const std::size_t servers : {5u, 10u, 100u}) {
    std::vector<Member> members;
    for (std::size_t i = 0; i < servers; ++i) members.push_back({"cache-" + std::to_string(i), 1});
    const NamedRing ring = ring_of(members);
    const auto n = static_cast<double>(servers);
    double squares = 0, largest = 0;
    for (const double share : ring.ring->shares()) {
      squares += std::pow(share * n - 1, 2);
      largest = std::max(largest, share * n);
    }
    const double theory = std::sqrt((n - 1) / (n * 1024 + 1));
    EXPECT_LT(std::sqrt(squares / n), 2 * theory) << servers;
    EXPECT_LT(largest, 1 + 4 * theory) << servers;
  }
}

TEST(RingLaw, AShareFollowsItsWeight) {
  const std::vector<Member> members{{"a", 1}, {"b", 2}, {"c", 0.5}, {"d", 4}, {"e", 0}};
  const NamedRing ring = ring_of(members);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double expected = members[i].weight / 7.5;
    EXPECT_NEAR(ring.ring->shares()[i], expected, 0.15 * expected) << members[i].label;
  }
}

TEST(RingLaw, KeysFollowTheShares) {
  const NamedRing ring = equal_ring({"a", "b", "c", "d", "e"});
  std::vector<double> counts(5);
  const std::vector<std::string> keys = test::sample_keys(100'000);
  for (const std::string& key : keys) ++counts[ring.ring->owner(ring.ring->hash(key))];
  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_NEAR(counts[i] / 100'000, ring.ring->shares()[i], 0.006);
}

}  // namespace
}  // namespace clockwise::ring
