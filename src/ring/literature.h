// Rings of published programs whose texts are not text: servers are numbers.
//
// For experiments alone; a pool is served by a Scheme (ring/scheme.h).
#pragma once

#include <cstdint>
#include <memory>

#include "ring/ring.h"

namespace clockwise::ring {

// The ring of a Rust program with DefaultHasher and a BTreeMap: servers 0 to `servers` - 1, each
// with `points` points. Point i of server s is SipHash-1-3, key of zeros, of the eight octets of
// the pair (s, i) as two little-endian numbers; a key is hashed as a `str`, with one octet 0xff
// behind it. Of two points at one position the one made later stands.
[[nodiscard]] std::shared_ptr<const Ring> build_siphash_u32(std::uint32_t points,
                                                            std::uint32_t servers);

// The same keys, hash mod `servers`.
[[nodiscard]] std::shared_ptr<const Ring> build_siphash_modulo(std::uint32_t servers);

}  // namespace clockwise::ring
