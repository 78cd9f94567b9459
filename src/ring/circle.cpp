#include "ring/circle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ring/points.h"

namespace clockwise::ring {
namespace {

// Longer buckets are searched by halving: the points of a weak hash may lie in heaps.
constexpr std::uint32_t kLongBucket = 32;

// After so many points it is settled whether anybody remains: otherwise an answer of "nobody" would
// cost a walk around the whole circle.
constexpr std::size_t kLongWalk = 256;

bool below(const Point& point, Position position) noexcept { return point.position < position; }

Position last_position(int bits) { return ~Position{0} >> (64 - bits); }

}  // namespace

// Ends that ascend strictly, the last one at the top of the circle.
struct CircleRing::Arcs {
  LargeVector<Position> ends;
  LargeVector<ServerIndex> owners;

  void add(Position end, ServerIndex owner) {
    if (!ends.empty() && ends.back() == end) return;  // a tie that is settled
    ends.push_back(end);
    owners.push_back(owner);
  }
  // Behind the last point: on to the top.
  void close(Position top, ServerIndex owner) {
    if (ends.back() != top) add(top, owner);
  }
};

CircleRing::CircleRing(Hashing hashing, Rule rule, Ties ties, Points points, std::size_t servers)
    : Ring(hashing.hash, hashing.part),
      rule_(rule),
      bits_(hashing.bits),
      top_(last_position(hashing.key_bits)) {
  layout_.keying = fmt::format("{}/{} {}", hashing.name, hashing.key_bits, keying_of(hashing.part));
  layout_.positions = static_cast<Arc>(top_) + 1;
  points_ = sorted_by_position(points, bits_);
  has_points_.assign(servers, false);
  for (const Point& point : points_) has_points_[point.server] = true;
  on_ring_ = static_cast<std::size_t>(std::count(has_points_.begin(), has_points_.end(), true));
  order_matters_ =
      ties == Ties::listed || (ties == Ties::by_order && servers_share_a_position(points_));
  lay_out();
  index_arcs();
  count_shares(servers);
  layout_.ends = ends_;
  layout_.owners = owners_;
}

void CircleRing::lay_out() {
  if (points_.empty()) return;
  Arcs arcs;
  arcs.ends.reserve(points_.size() + 1);
  arcs.owners.reserve(points_.size() + 1);
  switch (rule_) {
    case Rule::successor:
      lay_out_successors(arcs);
      break;
    case Rule::nearest:
      lay_out_nearest(arcs);
      break;
    case Rule::bisection:
      lay_out_bisection(arcs);
      break;
  }
  ends_ = std::move(arcs.ends);
  owners_ = std::move(arcs.owners);
}

// A point that no key reaches has nothing but the way to the first one that some key does: the
// arcs before it end at the top.
void CircleRing::lay_out_successors(Arcs& arcs) const {
  for (const Point& point : points_) arcs.add(std::min(point.position, top_), point.server);
  arcs.close(top_, points_.front().server);
}

// The border between two neighbours is half way; the one across the top may lie on either side of
// it. Of points at one position the first one counts.
void CircleRing::lay_out_nearest(Arcs& arcs) const {
  const Point& low = points_.front();
  const Point& high =
      *std::lower_bound(points_.begin(), points_.end(), points_.back().position, below);
  const Position across = (high.position + ((low.position - high.position) & top_) / 2) & top_;
  const bool above_the_top = across < low.position;
  if (above_the_top) arcs.add(across, high.server);
  const Point* before = &low;
  for (const Point& point : points_) {
    if (point.position == before->position) continue;
    arcs.add(before->position + (point.position - before->position) / 2, before->server);
    before = &point;
  }
  if (!above_the_top) arcs.add(across, high.server);
  arcs.close(top_, above_the_top ? high.server : low.server);
}

void CircleRing::lay_out_bisection(Arcs& arcs) const {
  for (std::size_t i = 0; i < points_.size();) {
    const auto [position, server] = points_[i];
    const ServerIndex hit = points_[bisected(position)].server;
    const bool room = position > 0 && (arcs.ends.empty() || arcs.ends.back() < position - 1);
    if (hit != server && room) arcs.add(position - 1, server);
    arcs.add(position, hit);
    while (i < points_.size() && points_[i].position == position) ++i;
  }
  arcs.close(top_, points_.back().server);
}

// The point that halving the sorted points meets first at a position. REQUIRES: there is one.
std::size_t CircleRing::bisected(Position position) const {
  std::size_t low = 0, high = points_.size();
  for (;;) {
    const std::size_t middle = (low + high) / 2;
    if (points_[middle].position == position) return middle;
    if (points_[middle].position < position)
      low = middle + 1;
    else
      high = middle;
  }
}

void CircleRing::index_arcs() {
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(ends_.size(), 2));
  shift_ = std::countr_one(top_) - std::countr_zero(buckets);
  first_.assign(buckets + 1, 0);
  for (const Position end : ends_) ++first_[(end >> shift_) + 1];
  even_ = *std::max_element(first_.begin(), first_.end()) <= kLongBucket;
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

void CircleRing::count_shares(std::size_t servers) {
  std::vector<Arc> arcs(servers, 0);
  Arc start = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const Arc next = static_cast<Arc>(ends_[i]) + 1;
    arcs[owners_[i]] += next - start;
    start = next;
  }
  shares_.resize(servers);
  std::transform(arcs.begin(), arcs.end(), shares_.begin(),
                 [&](Arc arc) { return share_of(arc, layout_.positions); });
}

std::size_t CircleRing::arc_of(Position position) const noexcept {
  const Position* const ends = ends_.data();
  const std::uint32_t* const bucket = first_.data() + (position >> shift_);
  std::size_t at = bucket[0];
  if (even_) [[likely]] {
    while (ends[at] < position) ++at;
    return at;
  }
  return static_cast<std::size_t>(std::lower_bound(ends + at, ends + bucket[1], position) - ends);
}

bool CircleRing::any_remains(const Excluded& excluded) const noexcept {
  for (std::size_t server = 0; server < has_points_.size(); ++server)
    if (has_points_[server] && !excluded(static_cast<ServerIndex>(server))) return true;
  return false;
}

std::optional<Point> CircleRing::walk(Position position, const Excluded& excluded) const noexcept {
  if (points_.empty()) return std::nullopt;
  return rule_ == Rule::nearest ? walk_both(position, excluded) : walk_up(position, excluded);
}

// The predicate may change its mind on the way, so the way is never longer than the circle.
std::optional<Point> CircleRing::walk_up(Position position,
                                         const Excluded& excluded) const noexcept {
  auto at = std::lower_bound(points_.begin(), points_.end(), position, below);
  if (at == points_.end()) at = rule_ == Rule::bisection ? points_.end() - 1 : points_.begin();
  if (rule_ == Rule::bisection) {
    // The owner of a position that is shared may not be the first of its points.
    const ServerIndex home = owner(position);
    if (!excluded(home)) return Point{at->position, home};
  }
  for (std::size_t seen = 0; seen < points_.size(); ++seen) {
    if (!excluded(at->server)) return *at;
    if (++at == points_.end()) at = points_.begin();
    if (seen == kLongWalk && !any_remains(excluded)) break;
  }
  return std::nullopt;
}

// Without the excluded servers the nearest point is the nearer of the first on either side.
std::optional<Point> CircleRing::walk_both(Position position,
                                           const Excluded& excluded) const noexcept {
  if (!any_remains(excluded)) return std::nullopt;
  const auto start = std::lower_bound(points_.begin(), points_.end(), position, below);
  auto up = start == points_.end() ? points_.begin() : start;
  std::size_t left = 2 * points_.size();
  for (; excluded(up->server); --left) {
    if (left == 0) return std::nullopt;
    if (++up == points_.end()) up = points_.begin();
  }
  auto down = start;
  do {
    if (left-- == 0) return std::nullopt;
    if (down == points_.begin()) down = points_.end();
    --down;
  } while (excluded(down->server));
  for (auto same = down; same != points_.begin() && (--same)->position == down->position;)
    if (!excluded(same->server)) down = same;
  const Position below_it = (position - down->position) & top_;
  const Position above_it = (up->position - position) & top_;
  return below_it <= above_it ? *down : *up;
}

}  // namespace clockwise::ring
