// Small words for tests about rings.
#pragma once

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ring/remap.h"
#include "ring/scheme.h"

namespace clockwise::ring::test {

struct NamedRing {
  std::vector<std::string> names;
  std::shared_ptr<const Ring> ring;

  const std::string& owner(Position position) const { return names[ring->owner(position)]; }
  const std::string& owner(std::string_view key) const { return owner(ring->hash(key)); }
};

inline NamedRing ring_of(const std::vector<Member>& members, std::uint32_t points = 1024) {
  NamedRing result;
  for (const Member& member : members) result.names.push_back(member.label);
  const auto built = build({.points = points}, members);
  if (!built) throw std::runtime_error(built.error().message);
  result.ring = *built;
  return result;
}

// Every server with weight 1.
inline NamedRing equal_ring(std::initializer_list<std::string> labels,
                            std::uint32_t points = 1024) {
  std::vector<Member> members;
  for (const std::string& label : labels) members.push_back({label, 1});
  return ring_of(members, points);
}

// A move in words.
struct NamedMove {
  std::string from, to;
  double ratio;
};

inline std::vector<NamedMove> in_words(const Account& account,
                                       const std::vector<std::string>& before,
                                       const std::vector<std::string>& after) {
  std::vector<NamedMove> moves;
  for (const Move& move : account.moves)
    moves.push_back({before[move.from], after[move.to], move.ratio});
  return moves;
}

// What changes hands between two rings that can be compared exactly.
inline std::vector<NamedMove> moves(const NamedRing& before, const NamedRing& after) {
  const Account account =
      compare({before.ring.get(), before.names}, {after.ring.get(), after.names});
  if (!account.exact) throw std::runtime_error("the account is an estimate");
  return in_words(account, before.names, after.names);
}

inline std::vector<std::string> sample_keys(std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("/item/" + std::to_string(i));
  return keys;
}

}  // namespace clockwise::ring::test
