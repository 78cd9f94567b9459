#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace clockwise {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // its bits in reverse

// Of each octet, with as many octets 0 behind it as the number of its table says.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t octet = 0; octet < 256; ++octet) {
    std::uint32_t sum = octet;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    tables[0][octet] = sum;
  }
  for (std::size_t i = 1; i < tables.size(); ++i)
    for (std::uint32_t octet = 0; octet < 256; ++octet) {
      const std::uint32_t sum = tables[i - 1][octet];
      tables[i][octet] = (sum >> 8) ^ tables[0][sum & 0xff];
    }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t word_of(const char* octets) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, octets, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

std::uint32_t add_octet(std::uint32_t sum, char octet) noexcept {
  return (sum >> 8) ^ kTables[0][(sum ^ static_cast<unsigned char>(octet)) & 0xff];
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] std::uint32_t by_machine(std::string_view octets,
                                                   std::uint32_t sum) noexcept {
  std::uint64_t wide = sum;
  for (; octets.size() >= 8; octets.remove_prefix(8))
    wide = _mm_crc32_u64(wide, word_of(octets.data()));
  sum = static_cast<std::uint32_t>(wide);
  for (const char octet : octets) sum = _mm_crc32_u8(sum, static_cast<unsigned char>(octet));
  return sum;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::string_view octets, std::uint32_t before) noexcept {
  std::uint32_t sum = ~before;
  for (; octets.size() >= 8; octets.remove_prefix(8)) {
    const std::uint64_t word = word_of(octets.data()) ^ sum;
    sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (const char octet : octets) sum = add_octet(sum, octet);
  return ~sum;
}

std::uint32_t crc32c(std::string_view octets, std::uint32_t before) noexcept {
#if defined(__x86_64__)
  static const bool kHelps = __builtin_cpu_supports("sse4.2") != 0;
  if (kHelps) return ~by_machine(octets, ~before);
#endif
  return crc32c_by_table(octets, before);
}

}  // namespace clockwise
