// Rings of the literature: `custom` and `modulo` (see builders.h), and those of literature.h.
#include "ring/literature.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

#include "ring/builders.h"
#include "ring/hashes.h"
#include "ring/named_hash.h"

namespace clockwise::ring {
namespace {

// The first bits of a digest, big-endian.
template <auto Digest, int Bits>
Position first_bits(std::string_view text) noexcept {
  const auto digest = Digest(text);
  Position position = 0;
  for (int octet = 0; octet < Bits / 8; ++octet)
    position = position << 8 | digest[static_cast<std::size_t>(octet)];
  return position;
}

template <auto Function>
std::uint32_t low_bits(std::string_view text) noexcept {
  return static_cast<std::uint32_t>(Function(text));
}

std::uint64_t plain_xxh64(std::string_view text) noexcept { return xxh64(text); }

constexpr NamedHash kShort[] = {named_hash<first_bits<md5, 32>>("md5", "md5", 32),
                                named_hash<first_bits<sha1, 32>>("sha1", "sha1", 32),
                                named_hash<first_bits<sha256, 32>>("sha256", "sha256", 32),
                                named_hash<crc32>("crc32", "crc32", 32),
                                named_hash<low_bits<xxh3>>("xxh3", "xxh3", 32),
                                named_hash<low_bits<plain_xxh64>>("xxh64", "xxh64", 32),
                                named_hash<low_bits<murmur2_64>>("murmur2", "murmur2", 32),
                                named_hash<low_bits<fnv1a_64>>("fnv1a_64", "fnv1a_64", 32),
                                named_hash<low_bits<siphash13>>("siphash13", "siphash13", 32)};
constexpr NamedHash kLong[] = {named_hash<first_bits<md5, 64>>("md5", "md5", 64),
                               named_hash<first_bits<sha1, 64>>("sha1", "sha1", 64),
                               named_hash<first_bits<sha256, 64>>("sha256", "sha256", 64),
                               named_hash<xxh3>("xxh3", "xxh3", 64),
                               named_hash<plain_xxh64>("xxh64", "xxh64", 64),
                               named_hash<murmur2_64>("murmur2", "murmur2", 64),
                               named_hash<fnv1a_64>("fnv1a_64", "fnv1a_64", 64),
                               named_hash<siphash13>("siphash13", "siphash13", 64)};

// Of 256 bits the first 64 decide: that two points agree in them does not happen.
const NamedHash& hash_of(const Scheme& scheme) {
  return scheme.bits == 32 ? find_hash(kShort, scheme.hash) : find_hash(kLong, scheme.hash);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

const std::string& name_of(const Member& member) {
  return member.name.empty() ? member.label : member.name;
}

// Of equal positions the smaller name stands first.
std::vector<ServerIndex> by_name(Members members) {
  std::vector<ServerIndex> order(members.size());
  std::iota(order.begin(), order.end(), ServerIndex{0});
  std::sort(order.begin(), order.end(), [&](ServerIndex a, ServerIndex b) {
    return std::tie(name_of(members[a]), a) < std::tie(name_of(members[b]), b);
  });
  return order;
}

void add_custom_points(const Scheme& scheme, const Member& member, ServerIndex server,
                       std::uint64_t count, Points& points) {
  const NamedHash& hash = hash_of(scheme);
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) {
    text = scheme.label;
    replace_all(text, "{i}", std::to_string(i));
    replace_all(text, "{name}", member.label);
    points.push_back({hash.function(text), server});
  }
}

// The whole digest, as one number, by the length of the table.
Position sha256_remainder(const Ring& ring, std::string_view key) noexcept {
  const std::uint64_t slots = ring.layout().table.size();
  if (slots == 0) return 0;
  std::uint64_t remainder = 0;
  for (const std::uint8_t octet : sha256(key)) remainder = (remainder << 8 | octet) % slots;
  return remainder;
}

std::string octets_of(std::uint32_t number) {
  std::string octets;
  for (int shift = 0; shift < 32; shift += 8) octets += static_cast<char>(number >> shift & 0xff);
  return octets;
}

constexpr NamedHash kSipHashOfStr = named_hash<siphash13_of_str>("", "siphash13_of_str", 64);

}  // namespace

std::vector<std::uint64_t> custom_counts(const Scheme& scheme, Members members) {
  return rounded_counts(scheme.points, members);
}

BuiltRing build_custom(const Scheme& scheme, Members members) {
  const std::vector<std::uint64_t> counts = custom_counts(scheme, members);
  Points points;
  points.reserve(std::reduce(counts.begin(), counts.end()));
  for (const ServerIndex server : by_name(members))
    add_custom_points(scheme, members[server], server, counts[server], points);
  const NamedHash& hash = hash_of(scheme);
  return std::make_shared<const CircleRing>(circle_hashing(hash, hash.bits, scheme),
                                            Rule::successor, CircleRing::Ties::settled,
                                            std::move(points), members.size());
}

std::vector<std::uint64_t> modulo_counts(const Scheme&, Members members) {
  std::vector<std::uint64_t> counts;
  counts.reserve(members.size());
  for (const Member& member : members)
    counts.push_back(on_ring(member) ? static_cast<std::uint64_t>(member.weight) : 0);
  return counts;
}

BuiltRing build_modulo(const Scheme& scheme, Members members) {
  std::vector<ServerIndex> slots = weighted_list(members);
  TableRing::Hashing hashing = table_hashing(hash_of(scheme), scheme);
  if (scheme.bits == 256)
    hashing = {sha256_remainder, "sha256 mod " + std::to_string(slots.size()),
               static_cast<Arc>(slots.size()), scheme.part()};
  return std::make_shared<const TableRing>(std::move(hashing), std::move(slots), members.size(),
                                           true);
}

std::shared_ptr<const Ring> build_siphash_u32(std::uint32_t points, std::uint32_t servers) {
  Points made;
  for (ServerIndex server = 0; server < servers; ++server)
    for (std::uint32_t i = 0; i < points; ++i)
      made.push_back({siphash13(octets_of(server) + octets_of(i)), server});
  std::reverse(made.begin(), made.end());
  return std::make_shared<const CircleRing>(circle_hashing(kSipHashOfStr, 64, {}), Rule::successor,
                                            CircleRing::Ties::by_order, std::move(made), servers);
}

std::shared_ptr<const Ring> build_siphash_modulo(std::uint32_t servers) {
  std::vector<ServerIndex> slots(servers);
  std::iota(slots.begin(), slots.end(), ServerIndex{0});
  return std::make_shared<const TableRing>(table_hashing(kSipHashOfStr, {}), std::move(slots),
                                           servers, true);
}

}  // namespace clockwise::ring
