// The ring of a pool: how keys are placed on its servers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/field.h"

namespace clockwise::config {

// A ring and where its parts are written, for what only shows beside the list of servers.
struct WrittenRing {
  Ring ring;
  const ring::SchemeFacts* facts = &ring::facts(ring.scheme.placement);  // null: no known scheme
  std::optional<Field> scheme;
  std::optional<Field> points;
  std::optional<Field> hash;  // or `key_hash`
  std::optional<Field> replicas;
  // Without a key of their own all servers may be: the pool has a fallback.
  bool may_own_nothing = false;
};

// The parameters may stand before the scheme. Each is judged by it: one that belongs to other
// schemes is a problem that names them. `hash` and `avalanche` that are left out get the values
// that the scheme takes then, so that equal rings are equal.
[[nodiscard]] WrittenRing read_ring(const Field& field, Protocol protocol);
// Of a pool that says nothing about it.
[[nodiscard]] WrittenRing default_ring(Protocol protocol);

// "belongs to scheme A, B or C, not to D": what is refused because the chosen scheme does not take
// it.
[[nodiscard]] std::string belongs_to(const std::function<bool(const ring::SchemeFacts&)>& takes,
                                     const ring::SchemeFacts& chosen);

}  // namespace clockwise::config
