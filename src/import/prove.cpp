#include "import/prove.h"

#include <fmt/format.h>

#include "import/write.h"

namespace clockwise::importer {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): each number gives one that looks unrelated.
std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

std::string utf8_text(std::uint64_t random) {
  std::string text;
  for (int i = 0; i < 4; ++i, random >>= 12) {
    const auto letter = 0x3b1 + random % 0x500;  // Greek to Armenian: two octets each
    text += static_cast<char>(0xc0 | letter >> 6);
    text += static_cast<char>(0x80 | (letter & 0x3f));
  }
  return text;
}

bool same_owner(const Pool& pool, std::size_t source, std::size_t here) {
  if (source == here) return true;
  // nginx takes one text for one server, however often it is listed.
  const bool by_text = pool.scheme.placement == ring::Placement::nginx;
  return by_text && pool.servers[source].label == pool.servers[here].label;
}

// What the template of the pool makes of a request target that is the key.
std::string_view ring_key(const Pool& pool, std::string_view target) {
  return pool.key == "{path}" ? target.substr(0, target.find('?')) : target;
}

void compare(const Pool& pool, const Model& model, const ring::Ring& ring, std::string_view key,
             PoolProof& proof) {
  const std::size_t here = ring.owner(ring.hash(ring_key(pool, key)));
  const std::size_t source = model(key);
  ++proof.keys;
  if (same_owner(pool, source, here)) return;
  if (proof.differences++ == 0)
    proof.first = {.key = std::string(key),
                   .source = pool.servers[source].name,
                   .here = pool.servers[here].name};
}

std::string why_not(const Pool& pool) {
  if (!pool.moves.empty()) return fmt::format("keys move: {}", pool.moves);
  if (!pool.placed) return "nothing to compare: the source looks at no key";
  if (!pool.model) return "nothing to compare: there is no model of the source";
  return {};
}

PoolProof prove_pool(const Pool& pool, const config::Pool& written, std::uint64_t keys,
                     const std::function<void(std::uint64_t)>& progress) {
  PoolProof proof{.pool = pool.name, .why_not = why_not(pool), .kept = pool.moves.empty()};
  if (!proof.why_not.empty()) return proof;
  const auto ring =
      ring::build(written.ring.scheme, config::members_of(written.servers), ring::kMaxPoints);
  if (!ring) {
    proof.why_not = ring.error().message;
    proof.kept = false;
    return proof;
  }
  if ((*ring)->empty()) {
    proof.why_not = "nothing to compare: no server is up";
    return proof;
  }
  const Model model = pool.model();
  for (std::uint64_t number = 0; number < keys; ++number) {
    compare(pool, model, **ring, sample_key(number), proof);
    progress(number + 1);
  }
  return proof;
}

}  // namespace

std::string sample_key(std::uint64_t number) {
  const std::uint64_t random = mixed(number);
  const std::uint64_t small = random % 100'000;
  switch (number % 12) {
    case 0:
      return fmt::format("/img/{:04}/{:016x}.jpg", small % 10'000, random);
    case 1:
      return fmt::format("/item/{}?page={}&sort=price", small, random >> 60);
    case 2:
      return fmt::format("user:{}:profile", small);
    case 3:
      return fmt::format("/{}/caf%C3%A9/%7Ea?q=1?2", small);
    case 4:
      return fmt::format("/{}/{}", utf8_text(random), small);
    case 5:
      return fmt::format("{}:{}", utf8_text(random), small);
    case 6:
      return fmt::format("sess_{:016x}{:016x}", random, mixed(random));
    case 7:
      return fmt::format("{{user:{}}}:{}", small, random >> 58);
    case 8:
      return fmt::format("a{{{}}}b{{c", small);
    case 9:
      return fmt::format("/{:x}/{}", random, std::string(random >> 56, 'x'));
    case 10:
      return fmt::format("{}", small);
    default:
      return fmt::format("/a//b/../{}?", small);
  }
}

Proof prove(const Import& import, std::uint64_t keys,
            const std::function<void(std::uint64_t)>& progress) {
  const std::string yaml = rings_to_yaml(import);
  const config::FileReader read = [&](const std::string&) {
    return std::variant<std::string, std::string>(std::in_place_index<0>, yaml);
  };
  const config::Environment none = [](std::string_view) { return std::nullopt; };
  config::LoadResult loaded = config::load("proof", read, none);
  if (auto* failure = std::get_if<config::Failure>(&loaded)) return std::move(*failure);
  const config::Config& written = std::get<config::Loaded>(loaded).config;
  std::vector<PoolProof> proofs;
  for (const Pool& pool : import.pools) {
    const std::uint64_t before = proofs.size() * keys;
    proofs.push_back(prove_pool(pool, *written.pool(pool.name), keys,
                                [&](std::uint64_t done) { progress(before + done); }));
  }
  return proofs;
}

}  // namespace clockwise::importer
