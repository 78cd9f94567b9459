// Varnish: the shard director (see builders.h).
#include <cmath>

#include "ring/builders.h"
#include "ring/hashes.h"
#include "ring/named_hash.h"

namespace clockwise::ring {
namespace {

constexpr NamedHash kHash = named_hash<varnish_sha256>("", "sha256_tail", 32);

}  // namespace

std::vector<std::uint64_t> varnish_counts(const Scheme& scheme, Members members) {
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members)
    counts.push_back(static_cast<std::uint64_t>(std::floor(scheme.points * member.weight)));
  return counts;
}

BuiltRing build_varnish(const Scheme& scheme, Members members) {
  const std::vector<std::uint64_t> counts = varnish_counts(scheme, members);
  Points points;
  for (ServerIndex server = 0; server < members.size(); ++server) {
    NumberedText text(members[server].label);
    for (std::uint64_t i = 0; i < counts[server]; ++i)
      points.push_back({varnish_sha256(text.with(i)), server});
  }
  points = sorted_by_position(points, kHash.bits);
  const bool by_order = servers_share_a_position(points);  // once they lead on, it no longer shows
  lead_past_the_dead(points, members);
  return std::make_shared<const CircleRing>(
      circle_hashing(kHash, kHash.bits, scheme), Rule::bisection,
      by_order ? CircleRing::Ties::listed : CircleRing::Ties::settled, std::move(points),
      members.size());
}

}  // namespace clockwise::ring
