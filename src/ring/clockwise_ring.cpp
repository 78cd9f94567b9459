// The default scheme. Keys find their point through an index over the top bits of the position:
// as many buckets as points, so a look-up is one step to the bucket and one or two along it.
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "ring/arc.h"
#include "ring/ring.h"

namespace clockwise::ring {
namespace {

std::uint64_t xxh64(std::string_view text) noexcept { return XXH64(text.data(), text.size(), 0); }

std::uint64_t point_count(double weight, std::uint32_t points_per_weight) {
  if (!(weight > 0)) return 0;
  return static_cast<std::uint64_t>(std::floor(points_per_weight * weight + 0.5));
}

std::uint64_t total_points(std::span<const Member> members, std::uint32_t points_per_weight) {
  std::uint64_t total = 0;
  for (const Member& member : members) total += point_count(member.weight, points_per_weight);
  return total;
}

std::string too_many_points(std::span<const Member> members, std::uint32_t points_per_weight,
                            std::uint32_t max_points) {
  std::uint32_t fits = 0;
  std::uint32_t too_many = points_per_weight;
  while (too_many - fits > 1) {
    const std::uint32_t middle = fits + (too_many - fits) / 2;
    (total_points(members, middle) <= max_points ? fits : too_many) = middle;
  }
  const std::string found =
      fmt::format("the servers have {} points together, at most {} are allowed",
                  total_points(members, points_per_weight), max_points);
  if (fits == 0) return found + ": even `points: 1` is too many, lower the weights";
  return found + fmt::format(": `points: {}` would fit", fits);
}

// The points of every member, members in the order of their labels.
std::vector<Point> hash_points(std::span<const Member> members, std::uint32_t points_per_weight) {
  std::vector<ServerIndex> order(members.size());
  std::iota(order.begin(), order.end(), ServerIndex{0});
  std::sort(order.begin(), order.end(), [&](ServerIndex a, ServerIndex b) {
    return std::tie(members[a].label, a) < std::tie(members[b].label, b);
  });

  std::vector<Point> points;
  points.reserve(total_points(members, points_per_weight));
  std::string text;
  for (const ServerIndex server : order) {
    text = members[server].label + "-";
    const std::size_t prefix = text.size();
    text.resize(prefix + 20);
    char* const digits = text.data() + prefix;
    const std::uint64_t count = point_count(members[server].weight, points_per_weight);
    for (std::uint64_t i = 0; i < count; ++i) {
      const char* const end = std::to_chars(digits, digits + 20, i).ptr;
      const std::string_view point_text(text.data(), static_cast<std::size_t>(end - text.data()));
      points.push_back({xxh64(point_text), server});
    }
  }
  return points;
}

// Bucket b begins at point first[b], the first whose position is not below b << shift.
struct BucketIndex {
  int shift = 63;
  std::vector<std::uint32_t> first;

  [[nodiscard]] std::size_t bucket(Position position) const noexcept { return position >> shift; }
};

BucketIndex count_buckets(std::span<const Point> points) {
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(points.size(), 2));
  BucketIndex index{64 - std::countr_zero(buckets), std::vector<std::uint32_t>(buckets + 1)};
  for (const Point& point : points) ++index.first[index.bucket(point.position) + 1];
  std::partial_sum(index.first.begin(), index.first.end(), index.first.begin());
  return index;
}

// Hashes spread evenly, so dealing the points into the buckets all but sorts them; an insertion
// sort mends the few that share one. Both steps are stable: equal positions stay in label order.
std::vector<Point> sort_points(std::span<const Point> points, const BucketIndex& index) {
  std::vector<Point> sorted(points.size());
  std::vector<std::uint32_t> next = index.first;
  for (const Point& point : points) sorted[next[index.bucket(point.position)]++] = point;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Point moving = sorted[i];
    std::size_t hole = i;
    for (; hole > 0 && sorted[hole - 1].position > moving.position; --hole)
      sorted[hole] = sorted[hole - 1];
    sorted[hole] = moving;
  }
  return sorted;
}

std::vector<double> exact_shares(std::span<const Point> points, std::size_t servers) {
  std::vector<Arc> arcs(servers, 0);
  if (!points.empty()) {
    arcs[points.front().server] = kWholeCircle - points.back().position + points.front().position;
    for (std::size_t i = 1; i < points.size(); ++i)
      arcs[points[i].server] += points[i].position - points[i - 1].position;
  }
  std::vector<double> shares(servers);
  std::transform(arcs.begin(), arcs.end(), shares.begin(), share_of);
  return shares;
}

class ClockwiseRing final : public Ring {
 public:
  ClockwiseRing(std::span<const Point> unsorted, std::size_t servers)
      : index_(count_buckets(unsorted)),
        points_(sort_points(unsorted, index_)),
        shares_(exact_shares(points_, servers)),
        has_points_(servers, false) {
    for (const Point& point : points_) has_points_[point.server] = true;
    on_circle_ = static_cast<std::size_t>(std::count(has_points_.begin(), has_points_.end(), true));
    lay_out();
  }

  Position hash(std::string_view key) const noexcept override { return xxh64(key); }

  ServerIndex owner(Position position) const noexcept override {
    return owners_.data()[first_at_or_after(position)];
  }

  std::optional<ServerIndex> successor(
      Position position, std::span<const ServerIndex> excluded) const noexcept override {
    // Settled first: otherwise an answer of "nobody" would cost a walk around the whole circle.
    if (distinct_on_circle(excluded) == on_circle_) return std::nullopt;
    std::size_t at = first_at_or_after(position);
    if (at == points_.size()) at = 0;
    while (std::find(excluded.begin(), excluded.end(), points_[at].server) != excluded.end())
      if (++at == points_.size()) at = 0;
    return points_[at].server;
  }

  std::span<const Point> points() const noexcept override { return points_; }
  std::span<const double> shares() const noexcept override { return shares_; }

 private:
  // What a look-up touches lies apart from points_: half the memory, so more of it stays cached.
  // A last entry stands for the wrap: every position is at or before it, and it has the first
  // owner.
  void lay_out() {
    positions_.reserve(points_.size() + 1);
    owners_.reserve(points_.size() + 1);
    for (const Point& point : points_) {
      positions_.push_back(point.position);
      owners_.push_back(point.server);
    }
    positions_.push_back(~Position{0});
    owners_.push_back(points_.empty() ? 0 : points_.front().server);
  }

  // points_.size() past the last point.
  std::size_t first_at_or_after(Position position) const noexcept {
    const Position* const positions = positions_.data();
    std::size_t at = index_.first.data()[index_.bucket(position)];
    while (positions[at] < position) ++at;
    return at;
  }

  std::size_t distinct_on_circle(std::span<const ServerIndex> servers) const noexcept {
    std::size_t distinct = 0;
    for (auto it = servers.begin(); it != servers.end(); ++it)
      if (*it < has_points_.size() && has_points_[*it] && std::find(servers.begin(), it, *it) == it)
        ++distinct;
    return distinct;
  }

  BucketIndex index_;
  std::vector<Point> points_;
  std::vector<Position> positions_;
  std::vector<ServerIndex> owners_;
  std::vector<double> shares_;
  std::vector<bool> has_points_;  // by server; a share of 0 does not tell: its points may be ties
  std::size_t on_circle_ = 0;     // how many servers have points
};

}  // namespace

Result<std::shared_ptr<const Ring>> build_clockwise_ring(std::span<const Member> members,
                                                         std::uint32_t points_per_weight,
                                                         std::uint32_t max_points) {
  if (total_points(members, points_per_weight) > max_points)
    return fail(too_many_points(members, points_per_weight, max_points));
  return std::make_shared<const ClockwiseRing>(hash_points(members, points_per_weight),
                                               members.size());
}

}  // namespace clockwise::ring
