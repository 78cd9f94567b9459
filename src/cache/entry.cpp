#include "cache/entry.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/crc32c.h"
#include "cache/packed.h"

namespace clockwise::cache {
namespace {

constexpr std::string_view kEntry = "clw\1", kPart = "clp\1";  // with the version

constexpr std::uint8_t kValidateAlways = 1, kNeverStale = 2, kImmutable = 4, kHasValidator = 8,
                       kForAuthorized = 16, kAllFlags = 31;

// No clock of ours shows more.
constexpr std::int64_t kLatest = std::int64_t{1} << 52;
// What can be validated is kept at least so long for it.
constexpr Seconds kForValidation = 300;

std::uint8_t flags_of(const Terms& terms) noexcept {
  return static_cast<std::uint8_t>(
      (terms.validate_always ? kValidateAlways : 0) | (terms.never_stale ? kNeverStale : 0) |
      (terms.immutable ? kImmutable : 0) | (terms.has_validator ? kHasValidator : 0) |
      (terms.for_authorized ? kForAuthorized : 0));
}

void set_flags(Terms& terms, std::uint8_t flags) noexcept {
  terms.validate_always = (flags & kValidateAlways) != 0;
  terms.never_stale = (flags & kNeverStale) != 0;
  terms.immutable = (flags & kImmutable) != 0;
  terms.has_validator = (flags & kHasValidator) != 0;
  terms.for_authorized = (flags & kForAuthorized) != 0;
}

// Without its sum; nothing: it is not the right one.
std::optional<std::string_view> without_sum(std::string_view value) {
  if (value.size() < kSumSize) return std::nullopt;
  const std::string_view summed = value.substr(0, value.size() - kSumSize);
  Unpacker sum(value.substr(summed.size()));
  if (sum.number<std::uint32_t>() != crc32c(summed)) return std::nullopt;
  return summed;
}

// Lines, each with its CRLF, and none of them empty.
bool is_head(std::string_view head) noexcept {
  if (head.empty()) return true;
  return head.ends_with("\r\n") && !head.starts_with("\r\n") &&
         head.find("\r\n\r\n") == std::string_view::npos && head.find('\0') == head.npos;
}

// As pack() makes them.
bool are_selectors(std::string_view packed) noexcept {
  while (!packed.empty()) {
    const std::size_t name = packed.find('\0');
    if (name == 0 || name == packed.npos) return false;
    packed.remove_prefix(name + 1);
    const std::size_t value = packed.find('\0');
    if (value == 0 || value == packed.npos || (packed[0] != '+' && packed[0] != '-')) return false;
    packed.remove_prefix(value + 1);
  }
  return true;
}

bool is_time(std::int64_t ms) noexcept { return ms >= 0 && ms <= kLatest; }

bool is_sound(const Entry& entry) noexcept {
  const Terms& terms = entry.terms;
  if (!is_time(terms.received_ms) || !is_time(entry.asked_ms)) return false;
  for (const std::uint32_t seconds :
       {terms.initial_age, terms.lifetime, terms.stale_while_revalidate, terms.stale_if_error})
    if (seconds > kForever) return false;
  const bool whole = entry.kind == Entry::Kind::answer;
  if (whole ? entry.body.size() != entry.length : !entry.body.empty()) return false;
  if (entry.kind == Entry::Kind::vary)
    return !entry.selectors.empty() && entry.head.empty() && entry.tags.empty() &&
           entry.length == 0 && entry.part_size == 0;
  if (entry.status < 200 || entry.status > 599) return false;
  if (!is_head(entry.head) || !are_selectors(entry.selectors)) return false;
  if (whole) return entry.part_size == 0;
  return entry.length > 0 && entry.length <= kMostParts * entry.part_size &&
         entry.parts() <= kMostParts;
}

void append_hex(std::string_view octets, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char octet : octets) {
    out += kDigits[static_cast<unsigned char>(octet) >> 4];
    out += kDigits[static_cast<unsigned char>(octet) & 15];
  }
}

// The first `octets` of the SHA-256, in hexadecimal digits.
void append_digest(std::string_view text, std::size_t octets, std::string& out) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr);
  append_hex({reinterpret_cast<const char*>(hash.data()), octets}, out);
}

}  // namespace

std::string front_of(const Entry& entry) {
  const Terms& terms = entry.terms;
  std::string out(kEntry);
  out.reserve(128 + entry.key.size() + entry.head.size() + entry.selectors.size() +
              entry.tags.size());
  pack_number(static_cast<std::uint8_t>(entry.kind), out);
  pack_number(flags_of(terms), out);
  pack_number(entry.status, out);
  for (const std::int64_t ms : {terms.received_ms, entry.asked_ms}) pack_number(ms, out);
  for (const std::uint32_t seconds :
       {terms.initial_age, terms.lifetime, terms.stale_while_revalidate, terms.stale_if_error})
    pack_number(seconds, out);
  pack_number(entry.generation, out);
  pack_number(entry.length, out);
  pack_number(entry.part_size, out);
  const std::array texts{entry.key, entry.head, entry.selectors, entry.tags};
  for (const std::string_view text : texts)
    pack_number(static_cast<std::uint16_t>(text.size()), out);
  for (const std::string_view text : texts) out.append(text);
  return out;
}

std::string part_front(std::uint64_t generation, std::uint32_t index) {
  std::string out(kPart);
  pack_number(generation, out);
  pack_number(index, out);
  return out;
}

std::string packed_sum(std::uint32_t sum) {
  std::string out;
  pack_number(sum, out);
  return out;
}

std::optional<Entry> read_entry(std::string_view value) {
  const auto summed = without_sum(value);
  if (!summed || !summed->starts_with(kEntry)) return std::nullopt;
  Unpacker octets(summed->substr(kEntry.size()));
  Entry entry;
  const auto kind = octets.number<std::uint8_t>();
  const auto flags = octets.number<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(Entry::Kind::vary) || (flags & ~kAllFlags) != 0)
    return std::nullopt;
  entry.kind = static_cast<Entry::Kind>(kind);
  set_flags(entry.terms, flags);
  entry.status = octets.number<std::uint16_t>();
  entry.terms.received_ms = octets.number<std::int64_t>();
  entry.asked_ms = octets.number<std::int64_t>();
  for (std::uint32_t* seconds : {&entry.terms.initial_age, &entry.terms.lifetime,
                                 &entry.terms.stale_while_revalidate, &entry.terms.stale_if_error})
    *seconds = octets.number<std::uint32_t>();
  entry.generation = octets.number<std::uint64_t>();
  entry.length = octets.number<std::uint64_t>();
  entry.part_size = octets.number<std::uint32_t>();
  std::array<std::uint16_t, 4> sizes{};
  for (std::uint16_t& size : sizes) size = octets.number<std::uint16_t>();
  entry.key = octets.text(sizes[0]);
  entry.head = octets.text(sizes[1]);
  entry.selectors = octets.text(sizes[2]);
  entry.tags = octets.text(sizes[3]);
  entry.body = octets.rest();
  if (!octets.good() || !is_sound(entry)) return std::nullopt;
  return entry;
}

std::optional<std::string_view> read_part(std::string_view value, std::uint64_t generation,
                                          std::uint32_t index) {
  const auto summed = without_sum(value);
  const std::string front = part_front(generation, index);
  if (!summed || !summed->starts_with(front)) return std::nullopt;
  return summed->substr(front.size());
}

std::string entry_key(std::string_view space, std::string_view key) {
  std::string out(space);
  out += ':';
  append_digest(key, 16, out);
  return out;
}

std::string variant_key(std::string_view entry_key, std::uint64_t generation,
                        std::string_view selectors) {
  std::string said;
  pack_number(generation, said);
  said += selectors;
  std::string out(entry_key);
  out += ':';
  append_digest(said, 8, out);
  return out;
}

std::string part_key(std::string_view entry_key, std::uint64_t generation, std::uint32_t index) {
  std::string drawn;
  pack_number(generation, drawn);
  std::string out(entry_key);
  out += ':';
  append_hex(drawn, out);
  return out.append(":").append(std::to_string(index));
}

Seconds time_left(const Terms& terms, std::int64_t now_ms) noexcept {
  Seconds longest =
      terms.never_stale ? 0 : std::max(terms.stale_while_revalidate, terms.stale_if_error);
  if (terms.has_validator) longest = std::max(longest, kForValidation);
  return std::max<Seconds>(0, terms.lifetime + longest - current_age(terms, now_ms));
}

}  // namespace clockwise::cache
