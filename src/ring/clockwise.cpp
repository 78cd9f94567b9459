// The default scheme (see builders.h).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>

#include "ring/builders.h"
#include "ring/circle.h"
#include "ring/hashes.h"

namespace clockwise::ring {
namespace {

Position hash_key(std::string_view key) noexcept { return xxh64(key); }

// The points of every member, members in the order of their labels.
std::vector<Point> hash_points(Members members, std::span<const std::uint64_t> counts) {
  std::vector<ServerIndex> order(members.size());
  std::iota(order.begin(), order.end(), ServerIndex{0});
  std::sort(order.begin(), order.end(), [&](ServerIndex a, ServerIndex b) {
    return std::tie(members[a].label, a) < std::tie(members[b].label, b);
  });

  std::vector<Point> points;
  points.reserve(std::reduce(counts.begin(), counts.end()));
  std::string text;
  for (const ServerIndex server : order) {
    text = members[server].label + "-";
    const std::size_t prefix = text.size();
    text.resize(prefix + 20);
    char* const digits = text.data() + prefix;
    for (std::uint64_t i = 0; i < counts[server]; ++i) {
      const char* const end = std::to_chars(digits, digits + 20, i).ptr;
      const std::string_view point_text(text.data(), static_cast<std::size_t>(end - text.data()));
      points.push_back({xxh64(point_text), server});
    }
  }
  return points;
}

}  // namespace

std::vector<std::uint64_t> clockwise_counts(const Scheme& scheme, Members members) {
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members)
    counts.push_back(member.live && member.weight > 0 ? static_cast<std::uint64_t>(std::floor(
                                                            scheme.points * member.weight + 0.5))
                                                      : 0);
  return counts;
}

BuiltRing build_clockwise(const Scheme& scheme, Members members) {
  return std::make_shared<const CircleRing>(
      CircleRing::Hashing{CircleRing::hash_with<hash_key>, "xxh64", 64, scheme.hash_tag},
      Rule::successor, CircleRing::Ties::settled,
      hash_points(members, clockwise_counts(scheme, members)), members.size());
}

}  // namespace clockwise::ring
