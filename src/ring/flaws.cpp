// What build() refuses (see builders.h). The configuration is checked before it comes here, with
// positions; this holds for whoever builds a ring by other means, and keeps the builders simple.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ring/builders.h"
#include "ring/prime.h"

namespace clockwise::ring {
namespace {

using Flaw = std::optional<std::string>;

constexpr std::uint32_t kDigestBits = 256;

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Flaw hash_flaw(const Scheme& scheme) {
  const std::span<const std::string_view> hashes = facts(scheme.placement).hashes;
  if (scheme.hash.empty() || std::find(hashes.begin(), hashes.end(), scheme.hash) != hashes.end())
    return std::nullopt;
  const std::string_view name = to_string(scheme.placement);
  if (hashes.empty())
    return fmt::format("hash \"{}\": the scheme {} has its own, leave it out", scheme.hash, name);
  return fmt::format("hash \"{}\" is none that the scheme {} knows: {}", scheme.hash, name,
                     fmt::join(hashes, ", "));
}

Flaw hash_tag_flaw(const Scheme& scheme) {
  if (scheme.hash_tag.empty() || scheme.hash_tag.size() == 2) return std::nullopt;
  return fmt::format("hash_tag \"{}\" must have two characters, as in \"{{}}\"", scheme.hash_tag);
}

Flaw bits_flaw(const Scheme& scheme) {
  const std::string_view hash =
      scheme.hash.empty() ? facts(scheme.placement).hashes.front() : std::string_view(scheme.hash);
  switch (scheme.bits) {
    case 32:
      return std::nullopt;
    case 64:
      if (hash != "crc32") return std::nullopt;
      return "bits 64: crc32 has 32 bits";
    case kDigestBits:
      if (hash == "sha256") return std::nullopt;
      return fmt::format("bits 256: only sha256 has so many, {} has not", hash);
    default:
      return fmt::format("bits {} must be 32, 64 or 256", scheme.bits);
  }
}

Flaw label_flaw(const Scheme& scheme) {
  for (const std::string_view part : {"{name}", "{i}"})
    if (scheme.label.find(part) == std::string::npos)
      return fmt::format("label \"{}\" lacks {}: points would coincide", scheme.label, part);
  return std::nullopt;
}

Flaw table_flaw(const Scheme& scheme, Members members) {
  if (!is_prime(scheme.table))
    return fmt::format("table {} is not a prime, 65537 is one", scheme.table);
  const auto servers = std::count_if(members.begin(), members.end(), on_ring);
  if (static_cast<std::uint64_t>(servers) > scheme.table)
    return fmt::format("table {} has fewer slots than there are servers, {}", scheme.table,
                       servers);
  return std::nullopt;
}

Flaw size_flaw(const Scheme& scheme) {
  if (scheme.min_size == 0) return "min_size 0: a ring has at least one point";
  if (scheme.max_size < scheme.min_size)
    return fmt::format("max_size {} is below min_size {}", scheme.max_size, scheme.min_size);
  return std::nullopt;
}

Flaw id_flaw(Members members) {
  std::map<std::uint32_t, std::string_view> holders;
  for (const Member& member : members) {
    if (member.id == 0) continue;
    const auto [holder, fresh] = holders.try_emplace(member.id, member.label);
    if (!fresh)
      return fmt::format("id {} belongs to two servers, \"{}\" and \"{}\"", member.id,
                         holder->second, member.label);
  }
  return std::nullopt;
}

Flaw parameter_flaw(const Scheme& scheme, Members members) {
  switch (scheme.placement) {
    case Placement::spymemcached:
      if (one_of(scheme.form, {"java", "libmemcached"})) return std::nullopt;
      return fmt::format("form \"{}\" must be java or libmemcached", scheme.form);
    case Placement::twemproxy:
      if (one_of(scheme.distribution, {"ketama", "modula"})) return std::nullopt;
      return fmt::format("distribution \"{}\" must be ketama or modula", scheme.distribution);
    case Placement::haproxy:
      return id_flaw(members);
    case Placement::envoy:
      return size_flaw(scheme);
    case Placement::maglev:
      return table_flaw(scheme, members);
    case Placement::custom:
      if (Flaw flaw = label_flaw(scheme)) return flaw;
      return bits_flaw(scheme);
    case Placement::modulo:
      return bits_flaw(scheme);
    default:
      return std::nullopt;
  }
}

Flaw weight_flaw(const Scheme& scheme, const Member& member) {
  const SchemeFacts& known = facts(scheme.placement);
  const auto flaw = [&](std::string_view wanted) {
    return fmt::format("server \"{}\": weight {} {}", member.label, member.weight, wanted);
  };
  if (!(member.weight >= 0 && member.weight <= known.max_weight))
    return flaw(fmt::format("is not 0 to {}", known.max_weight));
  if (known.whole_weights && member.weight != std::floor(member.weight))
    return flaw(fmt::format("is not a whole number, {} takes no other", known.name));
  return std::nullopt;
}

}  // namespace

Flaw flaw_of(const Scheme& scheme, Members members) {
  if (Flaw flaw = hash_flaw(scheme)) return flaw;
  if (Flaw flaw = hash_tag_flaw(scheme)) return flaw;
  if (Flaw flaw = parameter_flaw(scheme, members)) return flaw;
  for (const Member& member : members)
    if (Flaw flaw = weight_flaw(scheme, member)) return flaw;
  return std::nullopt;
}

}  // namespace clockwise::ring
