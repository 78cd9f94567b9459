#include "ring/points.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace clockwise::ring {
namespace {

// Longer runs are sorted with their places instead of by insertion.
constexpr std::size_t kShortRun = 32;

void sort_stably(std::span<Point> points) {
  if (points.size() > kShortRun) {
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

}  // namespace

NumberedText::NumberedText(std::string prefix) : text_(std::move(prefix)), prefix_(text_.size()) {
  text_.resize(prefix_ + kDigits);
}

std::string_view NumberedText::with(std::uint64_t number) noexcept {
  char* const digits = text_.data() + prefix_;
  const char* const end = std::to_chars(digits, digits + kDigits, number).ptr;
  return {text_.data(), static_cast<std::size_t>(end - text_.data())};
}

std::vector<std::uint64_t> rounded_counts(std::uint32_t points, Members members) {
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members)
    counts.push_back(
        on_ring(member) ? static_cast<std::uint64_t>(std::floor(points * member.weight + 0.5)) : 0);
  return counts;
}

std::vector<ServerIndex> weighted_list(Members members) {
  std::vector<ServerIndex> list;
  for (ServerIndex i = 0; i < members.size(); ++i)
    if (on_ring(members[i]))
      list.insert(list.end(), static_cast<std::size_t>(members[i].weight), i);
  return list;
}

// Hashes mostly spread evenly, so dealing the points into buckets all but sorts them; what shares a
// bucket is sorted there.
Points sorted_by_position(const Points& unsorted, int bits) {
  const int top_bits =
      std::clamp(std::countr_zero(std::bit_ceil(unsorted.size())), 1, std::min(bits, 31));
  const int shift = bits - top_bits;
  LargeVector<std::uint32_t> first((std::size_t{1} << top_bits) + 1);
  for (const Point& point : unsorted) ++first[(point.position >> shift) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());

  Points sorted(unsorted.size());
  LargeVector<std::uint32_t> next = first;
  for (const Point& point : unsorted) sorted[next[point.position >> shift]++] = point;
  for (std::size_t b = 0; b + 1 < first.size(); ++b)
    sort_stably(std::span(sorted).subspan(first[b], first[b + 1] - first[b]));
  return sorted;
}

bool servers_share_a_position(std::span<const Point> sorted) {
  return std::adjacent_find(sorted.begin(), sorted.end(), [](const Point& a, const Point& b) {
           return a.position == b.position && a.server != b.server;
         }) != sorted.end();
}

void lead_past_the_dead(Points& sorted, Members members) {
  std::optional<ServerIndex> next;
  for (int round = 0; round < 2; ++round)  // the last points lead to the first ones
    for (auto point = sorted.rbegin(); point != sorted.rend(); ++point) {
      if (members[point->server].live)
        next = point->server;
      else if (next)
        point->server = *next;
    }
  if (!next) sorted.clear();
}

}  // namespace clockwise::ring
