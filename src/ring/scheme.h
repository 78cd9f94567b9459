// The placement schemes: which server a key belongs to, as the peers and the literature place it.
//
// A Scheme is what the configuration says about it (`ring.scheme` and its parameters); build()
// makes the ring. docs/placement.md gives the recipe of each scheme and where it comes from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ring/ring.h"

namespace clockwise::ring {

enum class Placement : std::uint8_t {
  clockwise,     // the default: XXH64 on 2^64, points independent of the other servers
  nginx,         // hash … consistent
  nginx_hash,    // hash … without consistent
  ketama,        // libmemcached, weighted ketama
  libketama,     // the original library
  libmemcached,  // unweighted ketama
  spymemcached,  // Java clients
  twemproxy,     // nutcracker, ketama or modula
  haproxy,       // hash-type consistent
  varnish,       // the shard director
  envoy,         // ring_hash
  maglev,        // Envoy's Maglev table
  custom,        // any ring of the literature
  modulo,        // hash mod N, the control
};

struct Scheme {
  Placement placement = Placement::clockwise;
  std::uint32_t points = 1024;          // clockwise, custom, varnish: per unit of weight
  std::string hash = {};                // one of hashes_of(placement); empty: the first of them
  std::string form = "java";            // spymemcached: java, libmemcached
  std::string distribution = "ketama";  // twemproxy: ketama, modula
  std::optional<bool> avalanche = {};   // haproxy; absent: on, unless a hash is named
  std::uint32_t min_size = 1024;        // envoy: points of the whole ring
  std::uint32_t max_size = 8'388'608;
  std::uint32_t table = 65'537;      // maglev: slots, a prime
  std::string label = "{name}#{i}";  // custom: the text of point i of a server
  std::uint32_t bits = 32;           // custom, modulo: 32, 64 or 256 bits of the hash are used
  std::string hash_tag = {};         // empty, or two characters: only what stands between them
  std::string key_namespace = {};    // keys that begin with it are hashed without it

  [[nodiscard]] KeyPart part() const { return {key_namespace, hash_tag}; }
  friend bool operator==(const Scheme&, const Scheme&) = default;
};

// One entry of the server list as the ring sees it.
struct Member {
  std::string label;  // the text the scheme applies its rule to: the server's label, else its name
  double weight = 1;  // 0: owns nothing
  std::uint32_t id = 0;   // haproxy; 0: automatic, by the peer's rule
  bool live = true;       // false: the configuration says `draining` or `down`
  std::string name = {};  // decides ties of `custom`; empty: the label
};

// What the configuration needs to know of a scheme to judge what is written there.
struct SchemeFacts {
  Placement placement;
  std::string_view name;  // as in `ring.scheme`
  std::string_view peer;  // "nginx, hash … consistent", for messages
  std::span<const std::string_view>
      parameters;  // the keys of `ring` that it takes beside the common ones
  std::span<const std::string_view> hashes;  // what `hash` may be, the default first
  std::uint32_t default_points;              // of `points`; 0: the scheme does not take it
  bool monotone;  // a change of one server never moves a key between two others
  bool whole_weights;
  double max_weight;
  // The peer hashes the text of an address or its own name for the server: a `name` made up for
  // this product is hardly what it hashed.
  bool hashes_address;
  bool takes_id;
  bool may_repeat_labels;  // two servers may share a label
};

[[nodiscard]] std::span<const SchemeFacts> schemes() noexcept;
[[nodiscard]] const SchemeFacts& facts(Placement placement) noexcept;
[[nodiscard]] std::string_view to_string(Placement placement) noexcept;

// At most this many points in one ring unless the caller says otherwise.
inline constexpr std::uint32_t kMaxPoints = 4'000'000;

// How many points (table slots) the ring would have, without building it; by member where a scheme
// gives each its own. Cheap. REQUIRES: the scheme is valid.
[[nodiscard]] std::vector<std::uint64_t> point_counts(const Scheme& scheme,
                                                      std::span<const Member> members);

// The ids that haproxy gives to servers without one of their own: a counter from 1 that advances by
// one for each server and skips the ids in use. By member.
[[nodiscard]] std::vector<std::uint32_t> server_ids(std::span<const Member> members);

// Builds the ring. Fails when all points together exceed `max_points` (the message says which
// `points` would fit), or when a parameter is none that the scheme knows.
[[nodiscard]] Result<std::shared_ptr<const Ring>> build(const Scheme& scheme,
                                                        std::span<const Member> members,
                                                        std::uint32_t max_points = kMaxPoints);

}  // namespace clockwise::ring
