// The default scheme (see builders.h).
#include <algorithm>
#include <numeric>
#include <tuple>

#include "ring/builders.h"
#include "ring/circle.h"
#include "ring/hashes.h"
#include "ring/points.h"

namespace clockwise::ring {
namespace {

Position hash_key(std::string_view key) noexcept { return xxh64(key); }

// The points of every member, members in the order of their labels.
Points hash_points(Members members, std::span<const std::uint64_t> counts) {
  std::vector<ServerIndex> order(members.size());
  std::iota(order.begin(), order.end(), ServerIndex{0});
  std::sort(order.begin(), order.end(), [&](ServerIndex a, ServerIndex b) {
    return std::tie(members[a].label, a) < std::tie(members[b].label, b);
  });

  Points points;
  points.reserve(std::reduce(counts.begin(), counts.end()));
  for (const ServerIndex server : order) {
    NumberedText text(members[server].label + "-");
    for (std::uint64_t i = 0; i < counts[server]; ++i)
      points.push_back({xxh64(text.with(i)), server});
  }
  return points;
}

}  // namespace

std::vector<std::uint64_t> clockwise_counts(const Scheme& scheme, Members members) {
  return rounded_counts(scheme.points, members);
}

BuiltRing build_clockwise(const Scheme& scheme, Members members) {
  return std::make_shared<const CircleRing>(
      CircleRing::Hashing{CircleRing::hash_with<hash_key>, "xxh64", 64, scheme.part()},
      Rule::successor, CircleRing::Ties::settled,
      hash_points(members, clockwise_counts(scheme, members)), members.size());
}

}  // namespace clockwise::ring
