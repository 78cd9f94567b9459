// The hash functions that a scheme lets the configuration choose from, by name.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "ring/circle.h"
#include "ring/scheme.h"
#include "ring/table.h"

namespace clockwise::ring {

struct NamedHash {
  std::string_view name;    // in `ring.hash`
  std::string_view keying;  // the function itself: peers use one name for different functions
  int bits;                 // of its result
  Position (*function)(std::string_view) noexcept;
  decltype(CircleRing::Hashing::hash) of_key;
};

// Any hash function as one that gives a position.
template <auto Function>
Position position_by(std::string_view text) noexcept {
  return Function(text);
}

template <auto Function>
constexpr NamedHash named_hash(std::string_view name, std::string_view keying, int bits) {
  constexpr auto kFunction = position_by<Function>;
  return {name, keying, bits, kFunction, CircleRing::hash_with<kFunction>};
}

// The one of that name; of no name the first. REQUIRES: there is one.
inline const NamedHash& find_hash(std::span<const NamedHash> hashes, std::string_view name) {
  if (name.empty()) return hashes.front();
  return *std::find_if(hashes.begin(), hashes.end(),
                       [&](const NamedHash& hash) { return hash.name == name; });
}

// How keys are hashed onto a circle whose points have `bits`.
inline CircleRing::Hashing circle_hashing(const NamedHash& hash, int bits, const Scheme& scheme) {
  return {hash.of_key, std::string(hash.keying), bits, scheme.part(), hash.bits};
}

// How keys are hashed to a table. Named as a circle names it, so that the two can be compared.
inline TableRing::Hashing table_hashing(const NamedHash& hash, const Scheme& scheme) {
  return {hash.of_key, fmt::format("{}/{}", hash.keying, hash.bits),
          static_cast<Arc>(1) << hash.bits, scheme.part()};
}

}  // namespace clockwise::ring
