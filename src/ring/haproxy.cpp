// HAProxy: `hash-type consistent` (see builders.h).
#include <algorithm>
#include <numeric>

#include "ring/builders.h"
#include "ring/hashes.h"
#include "ring/named_hash.h"

namespace clockwise::ring {
namespace {

constexpr std::uint64_t kPointsPerWeight = 16;
constexpr std::uint32_t kIdStep = 4096;

template <std::uint32_t (*Function)(std::string_view) noexcept>
std::uint32_t mixed(std::string_view key) noexcept {
  return avalanche(Function(key));
}

constexpr NamedHash kPlain[] = {
    named_hash<sdbm>("sdbm", "sdbm", 32), named_hash<djb2>("djb2", "djb2", 32),
    named_hash<wt6>("wt6", "wt6", 32), named_hash<crc32>("crc32", "crc32", 32)};
constexpr NamedHash kMixed[] = {named_hash<mixed<sdbm>>("sdbm", "sdbm_avalanche", 32),
                                named_hash<mixed<djb2>>("djb2", "djb2_avalanche", 32),
                                named_hash<mixed<wt6>>("wt6", "wt6_avalanche", 32),
                                named_hash<mixed<crc32>>("crc32", "crc32_avalanche", 32)};

}  // namespace

std::vector<std::uint64_t> haproxy_counts(const Scheme&, Members members) {
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members)
    counts.push_back(on_ring(member) ? kPointsPerWeight * static_cast<std::uint64_t>(member.weight)
                                     : 0);
  return counts;
}

// The step between two ids is as long as the largest weight has points, and the mixing maps no two
// numbers to one: servers share a position only when ids from 2^20 on wrap around. Then the smaller
// id comes first.
BuiltRing build_haproxy(const Scheme& scheme, Members members) {
  const std::vector<std::uint64_t> counts = haproxy_counts(scheme, members);
  const std::vector<std::uint32_t> ids = server_ids(members);
  std::vector<ServerIndex> order(members.size());
  std::iota(order.begin(), order.end(), ServerIndex{0});
  std::sort(order.begin(), order.end(),
            [&](ServerIndex a, ServerIndex b) { return ids[a] < ids[b]; });

  Points points;
  for (const ServerIndex server : order)
    for (std::uint32_t k = 0; k < counts[server]; ++k)
      points.push_back({avalanche(ids[server] * kIdStep + k), server});

  const bool counted = std::any_of(members.begin(), members.end(),
                                   [](const Member& member) { return member.id == 0; });
  const bool mix = scheme.avalanche.value_or(scheme.hash.empty());
  return std::make_shared<const CircleRing>(
      circle_hashing(find_hash(mix ? kMixed : kPlain, scheme.hash), 32, scheme), Rule::nearest,
      counted ? CircleRing::Ties::listed : CircleRing::Ties::settled, std::move(points),
      members.size());
}

}  // namespace clockwise::ring
