// One builder per scheme, in one file per family; build() in scheme.cpp chooses.
//
// Each gets a scheme without a flaw (flaw_of) and the members in the order of the list. The limit
// on points was checked before, by the counts beside the builder. The recipe of each scheme, and
// the version of the peer it was checked against, is in docs/placement.md.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ring/points.h"
#include "ring/scheme.h"

namespace clockwise::ring {

using BuiltRing = std::shared_ptr<const Ring>;
using Counts = std::vector<std::uint64_t>;

// What is wrong with the scheme or the list, what was found and what is wanted; nothing when the
// ring can be built.
[[nodiscard]] std::optional<std::string> flaw_of(const Scheme& scheme, Members members);

// The default scheme, `clockwise`: XXH64 with seed 0 on a circle of 2^64. Point i of a server is
// XXH64(LABEL + "-" + i); a server has floor(points × weight + 0.5) of them, however many others
// there are, so that a change of one server never moves a key between two others. Points of equal
// position: the smaller label owns it (of equal labels, the earlier in the list).
[[nodiscard]] BuiltRing build_clockwise(const Scheme& scheme, Members members);
[[nodiscard]] Counts clockwise_counts(const Scheme& scheme, Members members);

// nginx: 160 points per weight, each the CRC-32 of the address and the point before it. A server
// that is down keeps its points; they lead to the next live server. Nothing for `nginx_hash` beside
// a table: hash mod weights, drawn again while the server drawn is down.
[[nodiscard]] BuiltRing build_nginx(const Scheme& scheme, Members members);
[[nodiscard]] Counts nginx_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_nginx_hash(const Scheme& scheme, Members members);

// The ketama family: MD5 digests of LABEL-i give four points each, how many depends on the share of
// all weights. Without the servers that are down the pool is another pool.
[[nodiscard]] BuiltRing build_ketama(const Scheme& scheme, Members members);
[[nodiscard]] Counts ketama_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_libketama(const Scheme& scheme, Members members);
[[nodiscard]] Counts libketama_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_libmemcached(const Scheme& scheme, Members members);
[[nodiscard]] Counts libmemcached_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_spymemcached(const Scheme& scheme, Members members);
[[nodiscard]] Counts spymemcached_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_twemproxy(const Scheme& scheme, Members members);
[[nodiscard]] Counts twemproxy_counts(const Scheme& scheme, Members members);

// HAProxy: 16 points per weight out of the id of the server; a key belongs to the nearest point.
[[nodiscard]] BuiltRing build_haproxy(const Scheme& scheme, Members members);
[[nodiscard]] Counts haproxy_counts(const Scheme& scheme, Members members);

// Varnish: floor(points × weight) points, the tail of SHA-256; no wrap behind the last point. A
// server that is down keeps its points; they lead to the next live server.
[[nodiscard]] BuiltRing build_varnish(const Scheme& scheme, Members members);
[[nodiscard]] Counts varnish_counts(const Scheme& scheme, Members members);

// Envoy: points of the whole ring dealt out by weight, or slots of a Maglev table.
[[nodiscard]] BuiltRing build_envoy(const Scheme& scheme, Members members);
[[nodiscard]] Counts envoy_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_maglev(const Scheme& scheme, Members members);
[[nodiscard]] Counts maglev_counts(const Scheme& scheme, Members members);

// The literature: any hash and any text of a point; and hash mod N, the control.
[[nodiscard]] BuiltRing build_custom(const Scheme& scheme, Members members);
[[nodiscard]] Counts custom_counts(const Scheme& scheme, Members members);
[[nodiscard]] BuiltRing build_modulo(const Scheme& scheme, Members members);
// Weight slots for each server on the ring: also of `nginx-hash`, and of twemproxy's modula.
[[nodiscard]] Counts modulo_counts(const Scheme& scheme, Members members);

}  // namespace clockwise::ring
