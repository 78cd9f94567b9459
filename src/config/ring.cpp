// The ring of a pool (see ring.h).
#include "config/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/keys.h"
#include "ring/prime.h"

namespace clockwise::config {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> kForms{"java", "libmemcached"};
constexpr std::array<std::string_view, 2> kDistributions{"ketama", "modula"};
constexpr std::uint32_t kMaxSize = 8'388'608;  // of an envoy ring, as the peer limits it

void read_word(const Field& field, std::string& out, Words words) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  if (std::ranges::find(words, scalar->text) != words.end())
    out = scalar->text;
  else
    report_choice(field, scalar->text, false, words);
}

void read_hash_tag(const Field& field, std::string& tag) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  const bool ascii = std::ranges::all_of(
      scalar->text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (scalar->text.empty() || (scalar->text.size() == 2 && ascii))
    tag = scalar->text;
  else
    field.error("is not two ASCII characters that stand around the tag, such as {}, or empty");
}

// Parameters of schemes.

// The next prime that a table may have, or the last one.
std::uint32_t near_prime(std::uint32_t number) {
  for (std::uint32_t up = number; up <= kMaxPoints; ++up)
    if (ring::is_prime(up)) return up;
  while (!ring::is_prime(number)) --number;
  return number;
}

void read_table(const Field& field, std::uint32_t& table) {
  std::uint32_t slots = table;
  integer(slots, 2, kMaxPoints)(field);
  if (ring::is_prime(slots))
    table = slots;
  else
    field.error(fmt::format("is not a prime number; {} is", near_prime(slots)));
}

void read_bits(const Field& field, std::uint32_t& bits) {
  std::uint32_t found = bits;
  integer(found, 32, 256)(field);
  if (found == 32 || found == 64 || found == 256)
    bits = found;
  else
    field.error("is not 32, 64 or 256");
}

// Literals, {name} and {i}; a brace opens one of these.
std::string_view label_fault(std::string_view text) {
  bool name = false, number = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{' && text[at] != '}') continue;
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("{name}"))
      name = true;
    else if (rest.starts_with("{i}"))
      number = true;
    else
      return "may hold {name} and {i}, and no other braces";
    at = text.find('}', at);
  }
  if (!number) return "has no {i}: all points of a server would be one";
  if (!name) return "has no {name}: all servers would have the same points";
  return {};
}

void read_label(const Field& field, std::string& label) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  if (const std::string_view fault = label_fault(scalar->text); !fault.empty())
    field.error(fault);
  else
    label = scalar->text;
}

void read_avalanche(const Field& field, std::optional<bool>& avalanche) {
  bool on = false;
  read_switch(field, on);
  avalanche = on;
}

struct Parameter {
  std::string_view key;
  void (*read)(const Field& field, ring::Scheme& scheme);
};

void read_hash(const Field& field, ring::Scheme& scheme) {
  read_word(field, scheme.hash, ring::facts(scheme.placement).hashes);
}

constexpr std::array<Parameter, 11> kParameters{{
    {"points", [](const Field& f, ring::Scheme& s) { integer(s.points, 1, kMaxPoints)(f); }},
    {"hash", read_hash},
    {"key_hash", read_hash},
    {"form", [](const Field& f, ring::Scheme& s) { read_word(f, s.form, kForms); }},
    {"distribution",
     [](const Field& f, ring::Scheme& s) { read_word(f, s.distribution, kDistributions); }},
    {"avalanche", [](const Field& f, ring::Scheme& s) { read_avalanche(f, s.avalanche); }},
    {"min_size", [](const Field& f, ring::Scheme& s) { integer(s.min_size, 1, kMaxSize)(f); }},
    {"max_size", [](const Field& f, ring::Scheme& s) { integer(s.max_size, 1, kMaxSize)(f); }},
    {"table", [](const Field& f, ring::Scheme& s) { read_table(f, s.table); }},
    {"label", [](const Field& f, ring::Scheme& s) { read_label(f, s.label); }},
    {"bits", [](const Field& f, ring::Scheme& s) { read_bits(f, s.bits); }},
}};

// The width of what `hash` may be where `bits` says how much of it counts.
std::uint32_t width_of(std::string_view hash) {
  if (hash == "sha256") return 256;
  if (hash == "sha1") return 160;
  if (hash == "md5") return 128;
  return hash == "crc32" ? 32 : 64;
}

// `hash` and `avalanche` that are left out.
void fill_in(WrittenRing& ring) {
  ring::Scheme& scheme = ring.ring.scheme;
  if (ring.facts == nullptr || ring.facts->hashes.empty()) return;
  const bool named = !scheme.hash.empty();
  if (scheme.placement == ring::Placement::haproxy && !scheme.avalanche) scheme.avalanche = !named;
  if (!named) scheme.hash = ring.facts->hashes.front();
}

// Where the reading of a ring begins.
WrittenRing unread_ring(Protocol protocol) {
  WrittenRing ring;
  if (protocol == Protocol::http) return ring;
  ring.ring.scheme.placement = ring::Placement::ketama;
  ring.ring.key = kItemKey;
  ring.facts = &ring::facts(ring::Placement::ketama);
  return ring;
}

// `ring:` up to its last key.
class RingReader {
 public:
  RingReader(const Field& field, Protocol protocol)
      : map_(field), memcached_(protocol == Protocol::memcached), out_(unread_ring(protocol)) {}

  WrittenRing read() {
    map_.read("scheme", [&](const Field& f) { read_scheme(f); });
    if (out_.facts != nullptr && out_.facts->default_points != 0)
      scheme_.points = out_.facts->default_points;
    for (const Parameter& parameter : kParameters) read_parameter(parameter);
    check_together();
    fill_in(out_);
    read_keys();
    map_.read("hash_tag", [&](const Field& f) { read_hash_tag(f, scheme_.hash_tag); });
    map_.read("replicas", [&](const Field& f) { read_replicas(f); });
    map_.read("bounded_load", only_off);
    map_.read("hot_keys", only_off);
    map_.finish();
    return std::move(out_);
  }

 private:
  void read_keys() {
    if (memcached_) {
      for (const std::string_view key : {"key", "key_ignore"})
        map_.refuse(key, "is not for memcached servers: memcached.key is what the ring hashes");
      return;
    }
    map_.read("key", [&](const Field& f) { read_key(f, out_.ring.key); });
    map_.read("key_ignore",
              [&](const Field& f) { read_key_ignore(f, out_.ring.key, out_.ring.key_ignore); });
  }

  void read_replicas(const Field& field) {
    if (!memcached_) return only(std::uint64_t{1})(field);
    integer(out_.ring.replicas, 1, kMaxReplicas)(field);
    out_.replicas = field;
  }

  void read_scheme(const Field& field) {
    out_.scheme = field;
    std::vector<std::string_view> names;
    for (const ring::SchemeFacts& one : ring::schemes()) names.push_back(one.name);
    std::string name;
    read_word(field, name, names);
    const auto found = std::ranges::find(names, name);
    out_.facts =
        found == names.end() ? nullptr : &ring::schemes()[std::size_t(found - names.begin())];
    if (out_.facts != nullptr) scheme_.placement = out_.facts->placement;
  }

  void read_parameter(const Parameter& parameter) {
    const auto takes = [&](const ring::SchemeFacts& facts) {
      return std::ranges::find(facts.parameters, parameter.key) != facts.parameters.end();
    };
    if (out_.facts != nullptr && !takes(*out_.facts)) {
      map_.refuse(parameter.key, belongs_to(takes, *out_.facts));
      return;
    }
    map_.read(parameter.key, [&](const Field& field) {
      if (out_.facts == nullptr) return;  // nothing to judge it by
      parameter.read(field, scheme_);
      written_.push_back({parameter.key, field});
    });
  }

  [[nodiscard]] const Field* written(std::string_view key) const {
    const auto found = std::ranges::find(written_, key, &Written::key);
    return found == written_.end() ? nullptr : &found->field;
  }

  // What each parameter alone does not show.
  void check_together() {
    if (const Field* const points = written("points")) out_.points = *points;
    if (const Field* const hash = written("hash")) out_.hash = *hash;
    if (const Field* const hash = written("key_hash")) out_.hash = *hash;
    if (scheme_.min_size > scheme_.max_size) {
      const Field* const where = written("min_size") ? written("min_size") : written("max_size");
      where->problem(fmt::format("a min_size of {} is above the max_size of {}", scheme_.min_size,
                                 scheme_.max_size));
    }
    const Field* const bits = written("bits");
    if (bits == nullptr) return;
    const std::string hash(scheme_.hash.empty() ? out_.facts->hashes.front() : scheme_.hash);
    if (scheme_.bits > width_of(hash))
      bits->error(fmt::format("is more than the {} bits of {}", width_of(hash), hash));
  }

  struct Written {
    std::string_view key;
    Field field;
  };

  MapReader map_;
  const bool memcached_;
  WrittenRing out_;
  ring::Scheme& scheme_ = out_.ring.scheme;
  std::vector<Written> written_;
};

}  // namespace

std::string belongs_to(const std::function<bool(const ring::SchemeFacts&)>& takes,
                       const ring::SchemeFacts& chosen) {
  std::vector<std::string_view> names;
  for (const ring::SchemeFacts& facts : ring::schemes())
    if (takes(facts)) names.push_back(facts.name);
  return fmt::format("belongs to scheme {}, not to {}", list_of(names), chosen.name);
}

WrittenRing read_ring(const Field& field, Protocol protocol) {
  return RingReader(field, protocol).read();
}

WrittenRing default_ring(Protocol protocol) {
  WrittenRing ring = unread_ring(protocol);
  fill_in(ring);
  return ring;
}

}  // namespace clockwise::config
