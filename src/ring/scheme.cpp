#include "ring/scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "ring/builders.h"

namespace clockwise::ring {
namespace {

template <std::size_t N>
using List = std::array<std::string_view, N>;

constexpr List<9> kMemcached{"md5",     "one_at_a_time", "crc",    "fnv1_32", "fnv1a_32",
                             "fnv1_64", "fnv1a_64",      "murmur", "jenkins"};
constexpr List<9> kLibmemcached{"one_at_a_time", "md5",      "crc",    "fnv1_32", "fnv1a_32",
                                "fnv1_64",       "fnv1a_64", "murmur", "jenkins"};
constexpr List<12> kTwemproxy{"fnv1a_64", "fnv1_64", "fnv1a_32", "fnv1_32",
                              "md5",      "crc16",   "crc32",    "crc32a",
                              "hsieh",    "murmur",  "jenkins",  "one_at_a_time"};
constexpr List<4> kHaproxy{"sdbm", "djb2", "wt6", "crc32"};
constexpr List<2> kEnvoy{"xxh64", "murmur2"};
constexpr List<9> kLiterature{"md5",   "sha1",    "sha256",   "crc32",    "xxh3",
                              "xxh64", "murmur2", "fnv1a_64", "siphash13"};

constexpr List<1> kPoints{"points"};
constexpr List<1> kKeyHash{"key_hash"};
constexpr List<1> kHash{"hash"};
constexpr List<2> kSpyParameters{"form", "hash"};
constexpr List<2> kTwemproxyParameters{"hash", "distribution"};
constexpr List<2> kHaproxyParameters{"hash", "avalanche"};
constexpr List<3> kEnvoyParameters{"min_size", "max_size", "hash"};
constexpr List<1> kMaglevParameters{"table"};
constexpr List<4> kCustomParameters{"hash", "label", "points", "bits"};
constexpr List<2> kModuloParameters{"hash", "bits"};

constexpr double kAnyWeight = 10'000;
constexpr double kHaproxyWeight = 256;

// placement, name, peer, parameters, hashes, default_points,
// monotone, whole_weights, max_weight, hashes_address, takes_id, may_repeat_labels
constexpr std::array<SchemeFacts, 14> kSchemes{{
    {Placement::clockwise,
     "clockwise",
     "Clockwise",
     kPoints,
     {},
     1024,
     true,
     false,
     kAnyWeight,
     false,
     false,
     false},
    {Placement::nginx,
     "nginx",
     "nginx (hash … consistent)",
     {},
     {},
     0,
     true,
     true,
     kAnyWeight,
     true,
     false,
     true},
    {Placement::nginx_hash,
     "nginx-hash",
     "nginx (hash …)",
     {},
     {},
     0,
     false,
     true,
     kAnyWeight,
     false,
     false,
     true},
    {Placement::ketama, "ketama", "libmemcached (weighted ketama)", kKeyHash, kMemcached, 0, false,
     true, kAnyWeight, true, false, false},
    {Placement::libketama,
     "libketama",
     "libketama",
     {},
     {},
     0,
     false,
     true,
     kAnyWeight,
     true,
     false,
     false},
    {Placement::libmemcached, "libmemcached", "libmemcached (ketama)", kHash, kLibmemcached, 0,
     false, true, kAnyWeight, true, false, false},
    {Placement::spymemcached, "spymemcached", "spymemcached", kSpyParameters, kMemcached, 0, false,
     true, kAnyWeight, true, false, false},
    {Placement::twemproxy, "twemproxy", "twemproxy (nutcracker)", kTwemproxyParameters, kTwemproxy,
     0, false, true, kAnyWeight, true, false, false},
    {Placement::haproxy, "haproxy", "HAProxy (hash-type consistent)", kHaproxyParameters, kHaproxy,
     0, true, true, kHaproxyWeight, false, true, true},
    {Placement::varnish,
     "varnish",
     "Varnish (shard director)",
     kPoints,
     {},
     67,
     true,
     false,
     kAnyWeight,
     false,
     false,
     false},
    {Placement::envoy, "envoy", "Envoy (ring_hash)", kEnvoyParameters, kEnvoy, 0, false, false,
     kAnyWeight, true, false, false},
    {Placement::maglev,
     "maglev",
     "Envoy (Maglev)",
     kMaglevParameters,
     {},
     0,
     false,
     false,
     kAnyWeight,
     true,
     false,
     false},
    {Placement::custom, "custom", "", kCustomParameters, kLiterature, 1024, true, false, kAnyWeight,
     false, false, false},
    {Placement::modulo, "modulo", "", kModuloParameters, kLiterature, 0, false, true, kAnyWeight,
     false, false, true},
}};

struct Builder {
  std::vector<std::uint64_t> (*counts)(const Scheme&, Members);
  BuiltRing (*build)(const Scheme&, Members);
};

constexpr std::array<Builder, 14> kBuilders{{
    {clockwise_counts, build_clockwise},
    {nginx_counts, build_nginx},
    {modulo_counts, build_nginx_hash},
    {ketama_counts, build_ketama},
    {libketama_counts, build_libketama},
    {libmemcached_counts, build_libmemcached},
    {spymemcached_counts, build_spymemcached},
    {twemproxy_counts, build_twemproxy},
    {haproxy_counts, build_haproxy},
    {varnish_counts, build_varnish},
    {envoy_counts, build_envoy},
    {maglev_counts, build_maglev},
    {custom_counts, build_custom},
    {modulo_counts, build_modulo},
}};

const Builder& builder(Placement placement) {
  return kBuilders[static_cast<std::size_t>(placement)];
}

std::uint64_t total(const Scheme& scheme, Members members) {
  const std::vector<std::uint64_t> counts = point_counts(scheme, members);
  return std::reduce(counts.begin(), counts.end());
}

std::string too_many_points(const Scheme& scheme, Members members, std::uint32_t max_points) {
  const std::string found =
      fmt::format("the servers have {} points together, at most {} are allowed",
                  total(scheme, members), max_points);
  if (scheme.placement == Placement::envoy)
    return found + fmt::format(": `max_size: {}` would fit", max_points);
  if (scheme.placement == Placement::maglev)
    return found + fmt::format(": choose a `table` of at most {}", max_points);
  if (facts(scheme.placement).default_points == 0) return found + ": lower the weights";
  Scheme smaller = scheme;
  std::uint32_t fits = 0;
  std::uint32_t too_many = scheme.points;
  while (too_many - fits > 1) {
    smaller.points = fits + (too_many - fits) / 2;
    (total(smaller, members) <= max_points ? fits : too_many) = smaller.points;
  }
  if (fits == 0) return found + ": even `points: 1` is too many, lower the weights";
  return found + fmt::format(": `points: {}` would fit", fits);
}

}  // namespace

std::span<const SchemeFacts> schemes() noexcept { return kSchemes; }

const SchemeFacts& facts(Placement placement) noexcept {
  return kSchemes[static_cast<std::size_t>(placement)];
}

std::string_view to_string(Placement placement) noexcept { return facts(placement).name; }

std::vector<std::uint32_t> server_ids(Members members) {
  std::set<std::uint32_t> taken;
  for (const Member& member : members)
    if (member.id != 0) taken.insert(member.id);
  std::vector<std::uint32_t> ids;
  ids.reserve(members.size());
  std::uint32_t counter = 0;
  for (const Member& member : members) {
    ++counter;
    if (member.id == 0)
      while (taken.contains(counter)) ++counter;
    ids.push_back(member.id != 0 ? member.id : counter);
  }
  return ids;
}

std::vector<std::uint64_t> point_counts(const Scheme& scheme, Members members) {
  return builder(scheme.placement).counts(scheme, members);
}

Result<std::shared_ptr<const Ring>> build(const Scheme& scheme, Members members,
                                          std::uint32_t max_points) {
  if (std::optional<std::string> flaw = flaw_of(scheme, members)) return fail(*std::move(flaw));
  if (total(scheme, members) > max_points)
    return fail(too_many_points(scheme, members, max_points));
  return builder(scheme.placement).build(scheme, members);
}

}  // namespace clockwise::ring
