#include "ring/hashes.h"

#include <bit>
#include <cstring>

namespace clockwise::ring {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded as they lie in memory");

template <class Word>
Word load(const char* at) noexcept {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The octets of a text that is shorter than a word, the first one lowest.
template <class Word>
Word load_tail(std::string_view text) noexcept {
  Word word = 0;
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  return word;
}

// An octet as those peers see it whose `char` is signed: 0x80 to 0xff count below zero.
std::uint32_t as_signed(char octet) noexcept {
  return static_cast<std::uint32_t>(static_cast<signed char>(octet));
}

constexpr std::uint32_t kFnvBasis32 = 0x811c9dc5, kFnvPrime32 = 0x01000193;
constexpr std::uint64_t kFnvBasis64 = 0xcbf29ce484222325, kFnvPrime64 = 0x100000001b3;

std::uint32_t fnv1(std::string_view text, std::uint32_t basis, std::uint32_t prime) noexcept {
  for (const char octet : text) basis = (basis * prime) ^ as_signed(octet);
  return basis;
}

std::uint32_t fnv1a(std::string_view text, std::uint32_t basis, std::uint32_t prime) noexcept {
  for (const char octet : text) basis = (basis ^ as_signed(octet)) * prime;
  return basis;
}

constexpr std::array<std::uint16_t, 256> crc16_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t entry = i << 8;
    for (int bit = 0; bit < 8; ++bit) entry = (entry << 1) ^ ((entry & 0x8000) != 0 ? 0x1021 : 0);
    table[i] = static_cast<std::uint16_t>(entry);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kCrc16 = crc16_table();

// The three words that lookup3 works on.
struct Lookup3 {
  std::uint32_t a, b, c;

  void mix() noexcept {
    step(a, c, b, 4);
    step(b, a, c, 6);
    step(c, b, a, 8);
    step(a, c, b, 16);
    step(b, a, c, 19);
    step(c, b, a, 4);
  }
  void finish() noexcept {
    last(c, b, 14);
    last(a, c, 11);
    last(b, a, 25);
    last(c, b, 16);
    last(a, c, 4);
    last(b, a, 14);
    last(c, b, 24);
  }

 private:
  static void step(std::uint32_t& x, std::uint32_t& y, std::uint32_t z, int turn) noexcept {
    x = (x - y) ^ std::rotl(y, turn);
    y += z;
  }
  static void last(std::uint32_t& x, std::uint32_t y, int turn) noexcept {
    x = (x ^ y) - std::rotl(y, turn);
  }
};

class SipHash13 {
 public:
  void add(std::uint64_t word) noexcept {
    v3_ ^= word;
    round();
    v0_ ^= word;
  }
  std::uint64_t finish() noexcept {
    v2_ ^= 0xff;
    for (int i = 0; i < 3; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() noexcept {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32) + v3_;
    v2_ += v1_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_ = 0x736f6d6570736575, v1_ = 0x646f72616e646f6d, v2_ = 0x6c7967656e657261,
                v3_ = 0x7465646279746573;
};

std::uint64_t siphash(std::string_view text, bool terminated) noexcept {
  const std::uint64_t length = text.size() + (terminated ? 1 : 0);
  SipHash13 state;
  for (; text.size() >= 8; text.remove_prefix(8)) state.add(load<std::uint64_t>(text.data()));
  auto rest = load_tail<std::uint64_t>(text);
  if (terminated) rest |= std::uint64_t{0xff} << (8 * text.size());
  if (terminated && text.size() == 7) {
    state.add(rest);
    rest = 0;
  }
  state.add(rest | length << 56);
  return state.finish();
}

}  // namespace

std::uint32_t ketama_word(const Md5& digest, std::size_t index) noexcept {
  std::uint32_t word;
  std::memcpy(&word, digest.data() + 4 * index, sizeof word);
  return word;
}

std::uint32_t ketama_md5(std::string_view key) noexcept { return ketama_word(md5(key), 0); }

std::uint32_t varnish_sha256(std::string_view text) noexcept {
  const Sha256 digest = sha256(text);
  std::uint32_t word;
  std::memcpy(&word, digest.data() + digest.size() - sizeof word, sizeof word);
  return word;
}

std::uint32_t crc32_high(std::string_view text) noexcept { return (crc32(text) >> 16) & 0x7fff; }

std::uint32_t crc16_uncut(std::string_view text) noexcept {
  std::uint32_t crc = 0;
  for (const char octet : text)
    crc = (crc << 8) ^ kCrc16[((crc >> 8) ^ static_cast<std::uint8_t>(octet)) & 0xff];
  return crc;
}

std::uint32_t fnv1_32(std::string_view text) noexcept {
  return fnv1(text, kFnvBasis32, kFnvPrime32);
}
std::uint32_t fnv1a_32(std::string_view text) noexcept {
  return fnv1a(text, kFnvBasis32, kFnvPrime32);
}
// Neither step carries anything from the upper half of the state to the lower one.
std::uint32_t fnv1_64_low(std::string_view text) noexcept {
  return fnv1(text, static_cast<std::uint32_t>(kFnvBasis64),
              static_cast<std::uint32_t>(kFnvPrime64));
}
std::uint32_t fnv1a_64_low(std::string_view text) noexcept {
  return fnv1a(text, static_cast<std::uint32_t>(kFnvBasis64),
               static_cast<std::uint32_t>(kFnvPrime64));
}
std::uint64_t fnv1a_64(std::string_view text) noexcept {
  std::uint64_t hash = kFnvBasis64;
  for (const char octet : text) hash = (hash ^ static_cast<std::uint8_t>(octet)) * kFnvPrime64;
  return hash;
}

std::uint32_t one_at_a_time(std::string_view text) noexcept {
  std::uint32_t hash = 0;
  for (const char octet : text) {
    hash += as_signed(octet);
    hash += hash << 10;
    hash ^= hash >> 6;
  }
  hash += hash << 3;
  hash ^= hash >> 11;
  return hash + (hash << 15);
}

std::uint32_t jenkins(std::string_view text) noexcept {
  const std::uint32_t start = 0xdeadbeef + static_cast<std::uint32_t>(text.size()) + 13;
  Lookup3 state{start, start, start};
  if (text.empty()) return state.c;
  const auto add = [&](const char* block) {
    state.a += load<std::uint32_t>(block);
    state.b += load<std::uint32_t>(block + 4);
    state.c += load<std::uint32_t>(block + 8);
  };
  for (; text.size() > 12; text.remove_prefix(12)) {
    add(text.data());
    state.mix();
  }
  std::array<char, 12> rest{};
  std::memcpy(rest.data(), text.data(), text.size());
  add(rest.data());
  state.finish();
  return state.c;
}

std::uint32_t hsieh(std::string_view text) noexcept {
  std::uint32_t hash = 0;
  for (; text.size() >= 4; text.remove_prefix(4)) {
    hash += load<std::uint16_t>(text.data());
    const std::uint32_t high = load<std::uint16_t>(text.data() + 2);
    hash = (hash << 16) ^ (high << 11) ^ hash;
    hash += hash >> 11;
  }
  if (text.size() == 3) {
    hash += load<std::uint16_t>(text.data());
    hash ^= hash << 16;
    hash ^= as_signed(text[2]) << 18;
    hash += hash >> 11;
  } else if (text.size() == 2) {
    hash += load<std::uint16_t>(text.data());
    hash ^= hash << 11;
    hash += hash >> 17;
  } else if (text.size() == 1) {
    hash += static_cast<std::uint8_t>(text[0]);
    hash ^= hash << 10;
    hash += hash >> 1;
  }
  hash ^= hash << 3;
  hash += hash >> 5;
  hash ^= hash << 4;
  hash += hash >> 17;
  hash ^= hash << 25;
  return hash + (hash >> 6);
}

std::uint32_t murmur2_32(std::string_view text) noexcept {
  constexpr std::uint32_t kFactor = 0x5bd1e995;
  const auto length = static_cast<std::uint32_t>(text.size());
  std::uint32_t hash = (0xdeadbeef * length) ^ length;
  for (; text.size() >= 4; text.remove_prefix(4)) {
    std::uint32_t word = load<std::uint32_t>(text.data()) * kFactor;
    word = (word ^ (word >> 24)) * kFactor;
    hash = (hash * kFactor) ^ word;
  }
  if (!text.empty()) hash = (hash ^ load_tail<std::uint32_t>(text)) * kFactor;
  hash = (hash ^ (hash >> 13)) * kFactor;
  return hash ^ (hash >> 15);
}

std::uint64_t murmur2_64(std::string_view text) noexcept {
  constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995;
  std::uint64_t hash = 0xc70f6907 ^ (text.size() * kFactor);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word = load<std::uint64_t>(text.data()) * kFactor;
    word = (word ^ (word >> 47)) * kFactor;
    hash = (hash ^ word) * kFactor;
  }
  if (!text.empty()) hash = (hash ^ load_tail<std::uint64_t>(text)) * kFactor;
  hash = (hash ^ (hash >> 47)) * kFactor;
  return hash ^ (hash >> 47);
}

std::uint32_t sdbm(std::string_view text) noexcept {
  std::uint32_t hash = 0;
  for (const char octet : text)
    hash = static_cast<std::uint8_t>(octet) + (hash << 6) + (hash << 16) - hash;
  return hash;
}

std::uint32_t djb2(std::string_view text) noexcept {
  std::uint32_t hash = 5381;
  for (const char octet : text) hash = hash * 33 + static_cast<std::uint8_t>(octet);
  return hash;
}

std::uint32_t wt6(std::string_view text) noexcept {
  std::uint32_t low = 0xa53c965a, high = 0x5ca6953a;
  int turn_high = 6, turn_low = 18;
  for (const char octet : text) {
    low = ~(low ^ static_cast<std::uint8_t>(octet));
    high = ~(high + static_cast<std::uint8_t>(octet));
    const std::uint32_t turned = std::rotl(high, turn_high);
    high = std::rotl(low, turn_low);
    low = turned;
    const std::uint32_t turns = ((low >> 16) ^ high) & 0xffff;
    turn_high = static_cast<int>(turns & 31);
    turn_low = static_cast<int>(turns >> 11);
  }
  return low ^ high;
}

std::uint32_t avalanche(std::uint32_t value) noexcept {
  value = (value + 0x7ed55d16) + (value << 12);
  value = (value ^ 0xc761c23c) ^ (value >> 19);
  value = (value + 0x165667b1) + (value << 5);
  value = (value + 0xd3a2646c) ^ (value << 9);
  value = (value + 0xfd7046c5) + (value << 3);
  value = (value ^ 0xb55a4f09) ^ (value >> 16);
  return value * 3221225473U;
}

std::uint64_t siphash13(std::string_view text) noexcept { return siphash(text, false); }
std::uint64_t siphash13_of_str(std::string_view text) noexcept { return siphash(text, true); }

}  // namespace clockwise::ring
