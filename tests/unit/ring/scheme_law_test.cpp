// Laws that the ring of every scheme keeps, on random schemes and lists of servers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

#include "ring/points.h"
#include "ring/scheme.h"

namespace clockwise::ring {
namespace {

template <class T>
T pick(std::initializer_list<T> choices) {
  return *rc::gen::elementOf(std::vector<T>(choices));
}

Scheme any_scheme_of(const SchemeFacts& facts) {
  Scheme scheme{.placement = facts.placement};
  scheme.points = *rc::gen::inRange(1u, 40u);
  if (!facts.hashes.empty())
    scheme.hash =
        *rc::gen::elementOf(std::vector<std::string>(facts.hashes.begin(), facts.hashes.end()));
  scheme.form = pick<std::string>({"java", "libmemcached"});
  scheme.distribution = pick<std::string>({"ketama", "modula"});
  scheme.avalanche = *rc::gen::arbitrary<bool>();
  scheme.min_size = *rc::gen::inRange(1u, 200u);
  scheme.max_size = scheme.min_size + *rc::gen::inRange(0u, 200u);
  scheme.table = pick<std::uint32_t>({11, 101, 1009});
  scheme.bits = pick<std::uint32_t>({32, 64});
  if (scheme.hash == "crc32") scheme.bits = 32;
  if (scheme.hash == "sha256" && *rc::gen::arbitrary<bool>()) scheme.bits = 256;
  return scheme;
}

const SchemeFacts& any_facts() {
  return schemes()[*rc::gen::inRange<std::size_t>(0, schemes().size())];
}

double any_weight(const SchemeFacts& facts) {
  return facts.whole_weights ? *rc::gen::inRange(0, 4) : *rc::gen::inRange(0, 13) / 4.0;
}

// 1 to 8 servers of distinct labels, of all kinds of text; perhaps none of them on the ring.
std::vector<Member> any_members(const SchemeFacts& facts) {
  const auto numbers = *rc::gen::resize(
      8, rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 1000))));
  const bool with_ids = *rc::gen::arbitrary<bool>();
  std::vector<Member> members;
  for (const int number : numbers) {
    const auto label = pick<const char*>(
        {"10.0.0.{}:11211", "host-{}", "[fd00::{}]:80", "unix:/run/{}.sock", "10.1.1.{}:8080"});
    members.push_back({.label = fmt::format(fmt::runtime(label), number),
                       .weight = any_weight(facts),
                       .id = with_ids ? static_cast<std::uint32_t>(number) + 1 : 0,
                       .live = *rc::gen::inRange(0, 4) != 0});
  }
  return members;
}

// The same, but at least one of them owns something.
std::vector<Member> some_members(const SchemeFacts& facts) {
  std::vector<Member> members = any_members(facts);
  Member& one = members[*rc::gen::inRange<std::size_t>(0, members.size())];
  one.weight = 3;
  one.live = true;
  return members;
}

std::shared_ptr<const Ring> ring_of(const Scheme& scheme, const std::vector<Member>& members) {
  return build(scheme, members).value();
}

Position last_position(const Ring& ring) {
  return static_cast<Position>(ring.layout().positions - 1);
}

// Any number as a position of the ring.
Position within(const Ring& ring, Position number) {
  const Position last = last_position(ring);
  return last == ~Position{0} ? number : number % (last + 1);
}

// Anywhere, or on and around a point.
std::vector<Position> some_positions(const Ring& ring) {
  const Position last = last_position(ring);
  std::mt19937_64 random(*rc::gen::arbitrary<unsigned>());
  std::vector<Position> positions{0, last};
  for (int i = 0; i < 20; ++i) {
    positions.push_back(within(ring, random()));
    const Position at = ring.points()[random() % ring.points().size()].position;
    for (const Position near : {at - 1, at, at + 1})
      if (near <= last) positions.push_back(near);
  }
  return positions;
}

// Slow readings of the points, one for each rule.

ServerIndex first_at_or_after(const Ring& ring, Position position) {
  for (const Point& point : ring.points())
    if (point.position >= position) return point.server;
  return ring.points().front().server;
}

ServerIndex nearest(const Ring& ring, Position position) {
  const Position last = last_position(ring);
  std::optional<Point> best;
  Position best_distance = 0;
  for (const Point& point : ring.points()) {
    const Position below = (position - point.position) & last;
    const Position above = (point.position - position) & last;
    const Position distance = std::min(below, above);
    const bool lower_of_two = best && distance == best_distance && below == distance &&
                              point.position != best->position &&
                              ((position - best->position) & last) != distance;
    if (!best || distance < best_distance || lower_of_two) {
      best = point;
      best_distance = distance;
    }
  }
  return best->server;
}

ServerIndex without_wrap(const Ring& ring, Position position) {
  const auto points = ring.points();
  std::size_t low = 0, high = points.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (points[middle].position == position) return points[middle].server;
    if (points[middle].position < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low == points.size() ? points.back().server : points[low].server;
}

ServerIndex slow_owner(const Scheme& scheme, const Ring& ring, Position position) {
  if (!ring.layout().table.empty()) return ring.points()[position % ring.points().size()].server;
  if (scheme.placement == Placement::haproxy) return nearest(ring, position);
  if (scheme.placement == Placement::varnish) return without_wrap(ring, position);
  return first_at_or_after(ring, position);
}

RC_GTEST_PROP(SchemeLaw, OwnersAreWhatASlowReadingOfThePointsFinds, ()) {
  const SchemeFacts& facts = any_facts();
  const Scheme scheme = any_scheme_of(facts);
  const auto ring = ring_of(scheme, some_members(facts));
  RC_ASSERT(std::is_sorted(ring->points().begin(), ring->points().end(),
                           [](const Point& a, const Point& b) { return a.position < b.position; }));
  for (const Position position : some_positions(*ring)) {
    const ServerIndex owner = ring->owner(position);
    RC_ASSERT(owner == slow_owner(scheme, *ring, position));
    RC_ASSERT(ring->successor(position, {})->server == owner);
  }
}

RC_GTEST_PROP(SchemeLaw, TheLayoutSaysWhatOwnersSay, ()) {
  const SchemeFacts& facts = any_facts();
  const auto ring = ring_of(any_scheme_of(facts), some_members(facts));
  const Layout& layout = ring->layout();
  RC_ASSERT(layout.ends.size() == layout.owners.size());
  RC_ASSERT(layout.ends.empty() != layout.table.empty());
  Position start = 0;
  for (std::size_t i = 0; i < layout.ends.size(); ++i) {
    RC_ASSERT(start <= layout.ends[i]);
    RC_ASSERT(ring->owner(start) == layout.owners[i]);
    RC_ASSERT(ring->owner(layout.ends[i]) == layout.owners[i]);
    start = layout.ends[i] + 1;
  }
  if (!layout.ends.empty()) RC_ASSERT(layout.ends.back() == last_position(*ring));
  for (std::size_t slot = 0; slot < layout.table.size() && slot < layout.positions; ++slot)
    RC_ASSERT(ring->owner(slot) == layout.table[slot]);
}

RC_GTEST_PROP(SchemeLaw, SharesAreThePartsOfAllPositions, ()) {
  const SchemeFacts& facts = any_facts();
  const auto members = any_members(facts);
  const auto ring = ring_of(any_scheme_of(facts), members);
  RC_ASSERT(ring->shares().size() == members.size());
  const double sum = std::accumulate(ring->shares().begin(), ring->shares().end(), 0.0);
  RC_ASSERT(std::abs(sum - (ring->empty() ? 0 : 1)) < 1e-12);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!members[i].live || members[i].weight <= 0) RC_ASSERT(ring->shares()[i] == 0);
}

// Where a key has 15 bits all positions can be counted.
RC_GTEST_PROP(SchemeLaw, SharesOfAShortHashAreACount, ()) {
  const auto placement = pick(
      {Placement::nginx_hash, Placement::libmemcached, Placement::ketama, Placement::twemproxy});
  const SchemeFacts& known = facts(placement);
  Scheme scheme = any_scheme_of(known);
  if (!known.hashes.empty()) scheme.hash = placement == Placement::twemproxy ? "crc32" : "crc";
  const auto ring = ring_of(scheme, some_members(known));
  std::vector<double> counts(ring->shares().size());
  for (Position position = 0; position <= last_position(*ring); ++position)
    ++counts[ring->owner(position)];
  for (std::size_t i = 0; i < counts.size(); ++i)
    RC_ASSERT(std::abs(ring->shares()[i] -
                       counts[i] / static_cast<double>(ring->layout().positions)) < 1e-12);
}

RC_GTEST_PROP(SchemeLaw, TheWalkFindsEveryServerOnceAndNoExcludedOne, ()) {
  const SchemeFacts& facts = any_facts();
  const auto members = any_members(facts);
  const auto ring = ring_of(any_scheme_of(facts), members);
  std::vector<bool> has_points(members.size(), false);
  for (const Point& point : ring->points()) has_points[point.server] = true;
  RC_ASSERT(ring->empty() == ring->points().empty());
  const Position start = ring->empty() ? 0 : within(*ring, *rc::gen::arbitrary<Position>());
  std::vector<ServerIndex> seen;
  while (const auto next = ring->successor(start, seen)) {
    RC_ASSERT(std::find(seen.begin(), seen.end(), next->server) == seen.end());
    RC_ASSERT(members[next->server].live);
    RC_ASSERT(members[next->server].weight > 0);
    seen.push_back(next->server);
  }
  RC_ASSERT(static_cast<std::ptrdiff_t>(seen.size()) ==
            std::count(has_points.begin(), has_points.end(), true));
}

RC_GTEST_PROP(SchemeLaw, CountsAreKnownBeforeTheRingIsBuilt, ()) {
  const SchemeFacts& facts = any_facts();
  const Scheme scheme = any_scheme_of(facts);
  const auto members = any_members(facts);
  const auto counts = point_counts(scheme, members);
  RC_ASSERT(counts.size() == members.size());
  const auto total = std::reduce(counts.begin(), counts.end());
  const auto ring = ring_of(scheme, members);
  const bool dead_points = facts.placement == Placement::nginx ||
                           facts.placement == Placement::varnish;  // gone when no server is live
  if (dead_points)
    RC_ASSERT(ring->points().size() <= total);
  else
    RC_ASSERT(ring->points().size() == total);
}

RC_GTEST_PROP(SchemeLaw, EveryKeyHasAPositionOfTheRing, ()) {
  const SchemeFacts& facts = any_facts();
  const auto ring = ring_of(any_scheme_of(facts), some_members(facts));
  for (const std::string& key : *rc::gen::arbitrary<std::vector<std::string>>())
    RC_ASSERT(ring->hash(key) < ring->layout().positions);
}

RC_GTEST_PROP(SchemeLaw, TheOrderOfTheListMattersOnlyWhereItSaysSo, ()) {
  const SchemeFacts& facts = any_facts();
  const Scheme scheme = any_scheme_of(facts);
  const auto members = some_members(facts);
  const auto one = ring_of(scheme, members);
  RC_PRE(!one->order_matters());
  std::vector<std::size_t> places(members.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::shuffle(places.begin(), places.end(), std::mt19937(*rc::gen::arbitrary<unsigned>()));
  std::vector<Member> shuffled;
  for (const std::size_t place : places) shuffled.push_back(members[place]);
  const auto other = ring_of(scheme, shuffled);
  for (const Position position : some_positions(*one))
    RC_ASSERT(one->owner(position) == places[other->owner(position)]);
}

// Of a monotone scheme, with labels and ids that stay what they are.
RC_GTEST_PROP(SchemeLaw, OneServerMoreMovesKeysToItAlone, ()) {
  const SchemeFacts& facts =
      ring::facts(pick({Placement::clockwise, Placement::nginx, Placement::haproxy,
                        Placement::varnish, Placement::custom}));
  RC_ASSERT(facts.monotone);
  const Scheme scheme = any_scheme_of(facts);
  std::vector<Member> members = some_members(facts);
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i].id = static_cast<std::uint32_t>(i) + 1;
  std::vector<Member> more = members;
  more.push_back({.label = "fresh:80", .weight = 2, .id = 77});
  const auto before = ring_of(scheme, members), after = ring_of(scheme, more);
  RC_LOG() << facts.name;
  // Of servers that share a position ("host-5" with the number 10, and "host-51" with 0), bisection
  // finds one or the other as the number of points has it.
  for (const Ring* ring : {before.get(), after.get()})
    RC_PRE(facts.placement != Placement::varnish || !servers_share_a_position(ring->points()));
  const auto fresh = static_cast<ServerIndex>(members.size());
  for (const Ring* ring : {before.get(), after.get()})
    for (const Position end : ring->layout().ends)
      if (after->owner(end) != fresh) RC_ASSERT(after->owner(end) == before->owner(end));
}

}  // namespace
}  // namespace clockwise::ring
