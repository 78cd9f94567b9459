// Envoy: `ring_hash` and Maglev (see builders.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "ring/builders.h"
#include "ring/hashes.h"
#include "ring/named_hash.h"

namespace clockwise::ring {
namespace {

std::uint64_t hash_key(std::string_view key) noexcept { return xxh64(key); }

// Keys are hashed so whatever the points are hashed with.
constexpr NamedHash kKeyHash = named_hash<hash_key>("xxh64", "xxh64", 64);

constexpr ServerIndex kNobody = std::numeric_limits<ServerIndex>::max();

double weight_on_ring(Members members) {
  double sum = 0;
  for (const Member& member : members)
    if (on_ring(member)) sum += member.weight;
  return sum;
}

// How many points a ring of one server of all weight would have.
double scale_of(const Scheme& scheme, Members members, double all) {
  double least = 1;
  for (const Member& member : members)
    if (on_ring(member)) least = std::min(least, member.weight / all);
  return std::min(std::ceil(least * scheme.min_size) / least, static_cast<double>(scheme.max_size));
}

// The servers on the ring by the text of their labels.
std::vector<ServerIndex> by_label(Members members) {
  std::vector<ServerIndex> order;
  for (ServerIndex i = 0; i < members.size(); ++i)
    if (on_ring(members[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](ServerIndex a, ServerIndex b) {
    return std::tie(members[a].label, a) < std::tie(members[b].label, b);
  });
  return order;
}

// Does a server have just what its weight asks for? Else the points of one server are rounded by
// what the servers before it in the list left over.
bool counts_are_exact(const Scheme& scheme, Members members,
                      std::span<const std::uint64_t> counts) {
  const double all = weight_on_ring(members);
  const double scale = scale_of(scheme, members, all);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (on_ring(members[i]) && scale * (members[i].weight / all) != static_cast<double>(counts[i]))
      return false;
  return true;
}

// One server of a Maglev table and its order of preference among the slots.
class Chooser {
 public:
  Chooser(ServerIndex index, std::string_view label, double share, std::uint64_t slots)
      : server(index),
        weight(share),
        slots_(slots),
        next_(xxh64(label) % slots),
        skip_(xxh64(label, 1) % (slots - 1) + 1) {}

  // The slot it likes best of those not asked for yet.
  std::uint64_t next_slot() noexcept {
    const std::uint64_t slot = next_;
    next_ = (next_ + skip_) % slots_;
    return slot;
  }

  ServerIndex server;
  double weight;
  double target = 0;  // it takes part in the round in which its weights add up to this

 private:
  std::uint64_t slots_, next_, skip_;
};

std::vector<ServerIndex> fill_table(std::vector<Chooser> choosers, std::size_t slots) {
  std::vector<ServerIndex> table(choosers.empty() ? 0 : slots, kNobody);
  double largest = 0;
  for (const Chooser& chooser : choosers) largest = std::max(largest, chooser.weight);
  std::size_t filled = 0;
  for (std::uint64_t round = 1; filled < table.size(); ++round)
    for (Chooser& chooser : choosers) {
      if (static_cast<double>(round) * chooser.weight < chooser.target) continue;
      chooser.target += largest;
      std::uint64_t slot = chooser.next_slot();
      while (table[slot] != kNobody) slot = chooser.next_slot();
      table[slot] = chooser.server;
      if (++filled == table.size()) break;
    }
  return table;
}

}  // namespace

std::vector<std::uint64_t> envoy_counts(const Scheme& scheme, Members members) {
  const double all = weight_on_ring(members);
  const double scale = scale_of(scheme, members, all);
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  double target = 0, reached = 0;
  for (const Member& member : members) {
    if (on_ring(member)) target += scale * (member.weight / all);
    const double next = std::max(reached, std::ceil(target));
    counts.push_back(static_cast<std::uint64_t>(next - reached));
    reached = next;
  }
  return counts;
}

BuiltRing build_envoy(const Scheme& scheme, Members members) {
  const std::vector<std::uint64_t> counts = envoy_counts(scheme, members);
  const bool by_murmur = scheme.hash == "murmur2";
  Points points;
  for (const ServerIndex server : by_label(members)) {
    NumberedText text(members[server].label + "_");
    for (std::uint64_t i = 0; i < counts[server]; ++i) {
      const std::string_view numbered = text.with(i);
      points.push_back({by_murmur ? murmur2_64(numbered) : xxh64(numbered), server});
    }
  }
  return std::make_shared<const CircleRing>(
      circle_hashing(kKeyHash, kKeyHash.bits, scheme), Rule::successor,
      counts_are_exact(scheme, members, counts) ? CircleRing::Ties::settled
                                                : CircleRing::Ties::listed,
      std::move(points), members.size());
}

// By weight; the rounding of the peer depends on the whole table and may give a slot to another.
std::vector<std::uint64_t> maglev_counts(const Scheme& scheme, Members members) {
  const double all = weight_on_ring(members);
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  double weight = 0;
  std::uint64_t given = 0;
  for (const Member& member : members) {
    if (on_ring(member)) weight += member.weight;
    const auto up_to_here =
        all > 0 ? static_cast<std::uint64_t>(std::round(scheme.table * (weight / all))) : 0;
    counts.push_back(up_to_here - given);
    given = up_to_here;
  }
  return counts;
}

BuiltRing build_maglev(const Scheme& scheme, Members members) {
  const double all = weight_on_ring(members);
  std::vector<Chooser> choosers;
  bool same_label = false;
  for (const ServerIndex server : by_label(members)) {
    const Member& member = members[server];
    same_label |= !choosers.empty() && members[choosers.back().server].label == member.label;
    choosers.emplace_back(server, member.label, member.weight / all, scheme.table);
  }
  return std::make_shared<const TableRing>(table_hashing(kKeyHash, scheme),
                                           fill_table(std::move(choosers), scheme.table),
                                           members.size(), same_label);
}

}  // namespace clockwise::ring
