// The ketama family: libketama, libmemcached, spymemcached, twemproxy (see builders.h).
//
// The number of points of a server depends on its share of all weights, computed in single
// precision: what a peer rounds away here moves keys. Contraction of floating-point expressions is
// off for this module (CMakeLists.txt).
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ring/builders.h"
#include "ring/hashes.h"
#include "ring/named_hash.h"

namespace clockwise::ring {
namespace {

static_assert(FLT_EVAL_METHOD == 0, "float expressions must be computed as float");

constexpr std::uint64_t kWordsPerDigest = 4;
constexpr std::uint64_t kUnweightedPoints = 100;

constexpr NamedHash kMd5 = named_hash<ketama_md5>("md5", "md5_le", 32);
constexpr NamedHash kOneAtATime =
    named_hash<one_at_a_time>("one_at_a_time", "one_at_a_time_signed", 32);
constexpr NamedHash kFnv1_32 = named_hash<fnv1_32>("fnv1_32", "fnv1_32_signed", 32);
constexpr NamedHash kFnv1a_32 = named_hash<fnv1a_32>("fnv1a_32", "fnv1a_32_signed", 32);
constexpr NamedHash kFnv1_64 = named_hash<fnv1_64_low>("fnv1_64", "fnv1_64_signed", 32);
constexpr NamedHash kFnv1a_64 = named_hash<fnv1a_64_low>("fnv1a_64", "fnv1a_64_signed", 32);
constexpr NamedHash kMurmur = named_hash<murmur2_32>("murmur", "murmur2_deadbeef", 32);
constexpr NamedHash kJenkins = named_hash<jenkins>("jenkins", "lookup3_13", 32);

constexpr NamedHash kMemcached[] = {
    kMd5,      kOneAtATime, named_hash<crc32_high>("crc", "crc32_high", 15),
    kFnv1_32,  kFnv1a_32,   kFnv1_64,
    kFnv1a_64, kMurmur,     kJenkins};
constexpr NamedHash kTwemproxy[] = {kFnv1a_64,
                                    kFnv1_64,
                                    kFnv1a_32,
                                    kFnv1_32,
                                    kMd5,
                                    kMurmur,
                                    kJenkins,
                                    kOneAtATime,
                                    named_hash<crc16_uncut>("crc16", "crc16_uncut", 32),
                                    named_hash<crc32_high>("crc32", "crc32_high", 15),
                                    named_hash<crc32>("crc32a", "crc32", 32),
                                    named_hash<hsieh>("hsieh", "hsieh_signed", 32)};

// The servers that count, as the peers see the pool.
struct Pool {
  std::uint64_t weight = 0;
  std::uint64_t servers = 0;
};

Pool pool_of(Members members) {
  Pool pool;
  for (const Member& member : members) {
    if (!on_ring(member)) continue;
    pool.weight += static_cast<std::uint64_t>(member.weight);
    ++pool.servers;
  }
  return pool;
}

float part_of(const Member& member, const Pool& pool) {
  return static_cast<float>(member.weight) / static_cast<float>(pool.weight);
}

// How many digests a server has; each peer has its own way to the number.
using Digests = float (*)(const Member& member, const Pool& pool);

float libketama_digests(const Member& member, const Pool& pool) {
  const double product = static_cast<double>(part_of(member, pool)) * 40.0 *
                         static_cast<double>(static_cast<float>(pool.servers));
  return std::floor(static_cast<float>(product));
}

float libmemcached_digests(const Member& member, const Pool& pool) {
  float digests = part_of(member, pool) * 160.0F;
  digests /= 4.0F;
  digests *= static_cast<float>(pool.servers);
  return std::floor(digests + 1e-10F);
}

float twemproxy_digests(const Member& member, const Pool& pool) {
  float digests = part_of(member, pool) * 160.0F;
  digests /= 4.0F;
  digests *= static_cast<float>(pool.servers);
  return std::floor(static_cast<float>(static_cast<double>(digests) + 1e-10));
}

std::vector<std::uint64_t> weighted_counts(Members members, Digests digests) {
  const Pool pool = pool_of(members);
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members)
    counts.push_back(
        on_ring(member) ? kWordsPerDigest * static_cast<std::uint64_t>(digests(member, pool)) : 0);
  return counts;
}

std::vector<std::uint64_t> unweighted_counts(Members members) {
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members) counts.push_back(on_ring(member) ? kUnweightedPoints : 0);
  return counts;
}

// libmemcached counts a server's weight when it is added to the list, be it down later or not.
bool any_weight_above_one(Members members) {
  return std::any_of(members.begin(), members.end(),
                     [](const Member& member) { return member.weight > 1; });
}

// What a peer makes of the text in its configuration.
using Label = std::string (*)(const Member& member);

std::string whole_label(const Member& member) { return member.label; }

std::string label_without_default_port(const Member& member) {
  constexpr std::string_view kDefault = ":11211";
  std::string_view text = member.label;
  if (text.ends_with(kDefault)) text.remove_suffix(kDefault.size());
  return std::string(text);
}

bool has_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon + 1 < text.size() &&
         text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

// A socket address as Java prints it: `/host:port`, or `host/address:port`, which is left as it is.
std::string java_label(const Member& member) {
  std::string text = member.label;
  if (!has_port(text)) text += ":11211";
  return text.find('/') == std::string::npos ? "/" + text : text;
}

Points digest_points(Members members, std::span<const std::uint64_t> counts, Label label) {
  Points points;
  for (ServerIndex server = 0; server < members.size(); ++server) {
    NumberedText text(label(members[server]) + "-");
    for (std::uint64_t i = 0; i < counts[server] / kWordsPerDigest; ++i) {
      const Md5 digest = md5(text.with(i));
      for (std::size_t word = 0; word < kWordsPerDigest; ++word)
        points.push_back({ketama_word(digest, word), server});
    }
  }
  return points;
}

Points hashed_points(Members members, std::span<const std::uint64_t> counts, Label label,
                     const NamedHash& hash) {
  Points points;
  for (ServerIndex server = 0; server < members.size(); ++server) {
    NumberedText text(label(members[server]) + "-");
    for (std::uint64_t i = 0; i < counts[server]; ++i)
      points.push_back({hash.function(text.with(i)), server});
  }
  return points;
}

// Of equal positions the server that is listed first owns it.
BuiltRing circle(const Scheme& scheme, const NamedHash& hash, Points points, std::size_t servers) {
  constexpr int kPointBits = 32;
  return std::make_shared<const CircleRing>(circle_hashing(hash, kPointBits, scheme),
                                            Rule::successor, CircleRing::Ties::by_order,
                                            std::move(points), servers);
}

// The two forms of libmemcached: a weight above 1 anywhere makes it the weighted one.
std::vector<std::uint64_t> either_counts(Members members) {
  return any_weight_above_one(members) ? weighted_counts(members, libmemcached_digests)
                                       : unweighted_counts(members);
}

BuiltRing build_either(const Scheme& scheme, Members members, const NamedHash& hash, Label label) {
  const std::vector<std::uint64_t> counts = either_counts(members);
  return circle(scheme, hash,
                any_weight_above_one(members) ? digest_points(members, counts, label)
                                              : hashed_points(members, counts, label, hash),
                members.size());
}

bool is_java(const Scheme& scheme) { return scheme.form == "java"; }
bool is_modula(const Scheme& scheme) { return scheme.distribution == "modula"; }

}  // namespace

std::vector<std::uint64_t> libketama_counts(const Scheme&, Members members) {
  return weighted_counts(members, libketama_digests);
}

BuiltRing build_libketama(const Scheme& scheme, Members members) {
  return circle(scheme, kMd5,
                digest_points(members, libketama_counts(scheme, members), whole_label),
                members.size());
}

std::vector<std::uint64_t> ketama_counts(const Scheme&, Members members) {
  return weighted_counts(members, libmemcached_digests);
}

BuiltRing build_ketama(const Scheme& scheme, Members members) {
  return circle(scheme, find_hash(kMemcached, scheme.hash),
                digest_points(members, ketama_counts(scheme, members), label_without_default_port),
                members.size());
}

std::vector<std::uint64_t> libmemcached_counts(const Scheme&, Members members) {
  return either_counts(members);
}

BuiltRing build_libmemcached(const Scheme& scheme, Members members) {
  const NamedHash& hash = scheme.hash.empty() ? kOneAtATime : find_hash(kMemcached, scheme.hash);
  return build_either(scheme, members, hash, label_without_default_port);
}

std::vector<std::uint64_t> spymemcached_counts(const Scheme& scheme, Members members) {
  return is_java(scheme) ? weighted_counts(members, libmemcached_digests) : either_counts(members);
}

BuiltRing build_spymemcached(const Scheme& scheme, Members members) {
  const NamedHash& hash = find_hash(kMemcached, scheme.hash);
  if (!is_java(scheme)) return build_either(scheme, members, hash, java_label);
  return circle(scheme, hash,
                digest_points(members, spymemcached_counts(scheme, members), java_label),
                members.size());
}

std::vector<std::uint64_t> twemproxy_counts(const Scheme& scheme, Members members) {
  return is_modula(scheme) ? modulo_counts(scheme, members)
                           : weighted_counts(members, twemproxy_digests);
}

BuiltRing build_twemproxy(const Scheme& scheme, Members members) {
  const NamedHash& hash = find_hash(kTwemproxy, scheme.hash);
  if (is_modula(scheme))
    return std::make_shared<const TableRing>(table_hashing(hash, scheme), weighted_list(members),
                                             members.size(), true);
  return circle(
      scheme, hash,
      digest_points(members, twemproxy_counts(scheme, members), label_without_default_port),
      members.size());
}

}  // namespace clockwise::ring
