#include "ring/circle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

namespace clockwise::ring {
namespace {

// Longer buckets are searched by halving: the points of a weak hash may lie in heaps.
constexpr std::uint32_t kLongBucket = 32;

bool contains(std::span<const ServerIndex> servers, ServerIndex server) noexcept {
  return std::find(servers.begin(), servers.end(), server) != servers.end();
}

bool below(const Point& point, Position position) noexcept { return point.position < position; }

// Insertion for the few points that share a bucket; a heap of them is sorted with their places.
void sort_stably(std::span<Point> points) {
  if (points.size() > kLongBucket) {
    std::vector<std::pair<Point, std::size_t>> placed;
    placed.reserve(points.size());
    for (const Point& point : points) placed.emplace_back(point, placed.size());
    std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.position, a.second) < std::tie(b.first.position, b.second);
    });
    std::transform(placed.begin(), placed.end(), points.begin(),
                   [](const auto& one) { return one.first; });
    return;
  }
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point moving = points[i];
    std::size_t hole = i;
    for (; hole > 0 && points[hole - 1].position > moving.position; --hole)
      points[hole] = points[hole - 1];
    points[hole] = moving;
  }
}

int shift_for(std::size_t buckets, int bits) { return bits - std::countr_zero(buckets); }

std::size_t bucket_count(std::size_t items) {
  return std::bit_ceil(std::max<std::size_t>(items, 2));
}

}  // namespace

// Ends that ascend strictly, the last one at the top of the circle.
struct CircleRing::Arcs {
  std::vector<Position> ends;
  std::vector<ServerIndex> owners;

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

CircleRing::CircleRing(Hashing hashing, Rule rule, Ties ties, std::vector<Point> points,
                       std::size_t servers)
    : Ring(hashing.hash, hashing.hash_tag), rule_(rule), bits_(hashing.bits) {
  layout_.keying = fmt::format("{}/{} {}", hashing.name, hashing.bits, hashing.hash_tag);
  layout_.positions = static_cast<Arc>(1) << bits_;
  sort_points(std::move(points));
  has_points_.assign(servers, false);
  for (const Point& point : points_) has_points_[point.server] = true;
  on_ring_ = static_cast<std::size_t>(std::count(has_points_.begin(), has_points_.end(), true));
  if (ties == Ties::by_order)
    order_matters_ =
        std::adjacent_find(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
          return a.position == b.position && a.server != b.server;
        }) != points_.end();
  lay_out({});
  index_arcs();
  count_shares(servers);
  layout_.ends = ends_;
  layout_.owners = owners_;
}

// Hashes mostly spread evenly, so dealing the points into buckets all but sorts them; what shares a
// bucket is sorted there. Stable: equal positions stay in the order they came in.
void CircleRing::sort_points(std::vector<Point> unsorted) {
  const std::size_t buckets = bucket_count(unsorted.size());
  const int shift = shift_for(buckets, bits_);
  std::vector<std::uint32_t> first(buckets + 1);
  for (const Point& point : unsorted) ++first[(point.position >> shift) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());

  points_.resize(unsorted.size());
  std::vector<std::uint32_t> next = first;
  for (const Point& point : unsorted) points_[next[point.position >> shift]++] = point;
  for (std::size_t b = 0; b < buckets; ++b)
    sort_stably(std::span(points_).subspan(first[b], first[b + 1] - first[b]));
}

void CircleRing::lay_out(Arcs arcs) {
  if (points_.empty()) return;
  const Position top = ~Position{0} >> (64 - bits_);
  arcs.ends.reserve(points_.size() + 1);
  arcs.owners.reserve(points_.size() + 1);
  switch (rule_) {
    case Rule::successor:
      for (const Point& point : points_) arcs.add(point.position, point.server);
      arcs.close(top, points_.front().server);
      break;
    case Rule::nearest: {
      // The border between two neighbours is half way; the one across the top may lie on either
      // side of it.
      const Point& low = points_.front();
      const Point& high = points_.back();
      const Position across = high.position + (((low.position - high.position) & top) / 2);
      if ((across & top) < low.position) arcs.add(across & top, high.server);
      for (std::size_t i = 0; i + 1 < points_.size(); ++i) {
        const Position gap = points_[i + 1].position - points_[i].position;
        if (gap > 0) arcs.add(points_[i].position + gap / 2, points_[i].server);
      }
      if ((across & top) < low.position) {
        arcs.close(top, high.server);
      } else {
        arcs.add(across & top, high.server);
        arcs.close(top, low.server);
      }
      break;
    }
    case Rule::bisection:
      for (std::size_t i = 0; i < points_.size();) {
        const Position position = points_[i].position;
        std::size_t behind = i;
        while (behind < points_.size() && points_[behind].position == position) ++behind;
        std::size_t low = 0, high = points_.size(), middle = 0;
        while (points_[middle = (low + high) / 2].position != position)
          (points_[middle].position < position ? low : high) =
              points_[middle].position < position ? middle + 1 : middle;
        const ServerIndex hit = points_[middle].server;
        const bool room = position > 0 && (arcs.ends.empty() || arcs.ends.back() < position - 1);
        if (hit != points_[i].server && room) arcs.add(position - 1, points_[i].server);
        arcs.add(position, hit);
        i = behind;
      }
      arcs.close(top, points_.back().server);
      break;
  }
  ends_ = std::move(arcs.ends);
  owners_ = std::move(arcs.owners);
}

void CircleRing::index_arcs() {
  const std::size_t buckets = bucket_count(ends_.size());
  shift_ = shift_for(buckets, bits_);
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

// Settled first: otherwise an answer of "nobody" would cost a walk around the whole circle.
bool CircleRing::may_remain(std::span<const ServerIndex> excluded) const noexcept {
  std::size_t distinct = 0;
  for (auto it = excluded.begin(); it != excluded.end(); ++it)
    if (*it < has_points_.size() && has_points_[*it] && std::find(excluded.begin(), it, *it) == it)
      ++distinct;
  return distinct < on_ring_;
}

std::optional<Point> CircleRing::successor(Position position,
                                           std::span<const ServerIndex> excluded) const noexcept {
  if (!may_remain(excluded)) return std::nullopt;
  return rule_ == Rule::nearest ? walk_both(position, excluded) : walk_up(position, excluded);
}

std::optional<Point> CircleRing::walk_up(Position position,
                                         std::span<const ServerIndex> excluded) const noexcept {
  auto at = std::lower_bound(points_.begin(), points_.end(), position, below);
  if (at == points_.end()) at = rule_ == Rule::bisection ? points_.end() - 1 : points_.begin();
  if (rule_ == Rule::bisection) {
    // The owner of a position that is shared may not be the first of its points.
    const ServerIndex home = owner(position);
    if (!contains(excluded, home)) return Point{at->position, home};
  }
  while (contains(excluded, at->server))
    if (++at == points_.end()) at = points_.begin();
  return *at;
}

// Without the excluded servers the nearest point is the nearer of the first on either side.
std::optional<Point> CircleRing::walk_both(Position position,
                                           std::span<const ServerIndex> excluded) const noexcept {
  const auto start = std::lower_bound(points_.begin(), points_.end(), position, below);
  auto up = start == points_.end() ? points_.begin() : start;
  while (contains(excluded, up->server))
    if (++up == points_.end()) up = points_.begin();
  auto down = start;
  do {
    if (down == points_.begin()) down = points_.end();
    --down;
  } while (contains(excluded, down->server));
  const Position top = ~Position{0} >> (64 - bits_);
  const Position below_it = (position - down->position) & top;
  const Position above_it = (up->position - position) & top;
  return below_it <= above_it ? *down : *up;
}

}  // namespace clockwise::ring
