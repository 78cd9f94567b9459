#include "memcached/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace clockwise::memcached {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  values['='] = 0;
  return values;
}

constexpr std::array<std::int8_t, 256> kValues = make_values();

}  // namespace

std::size_t decode_base64(std::string_view text, char* out) noexcept {
  std::size_t size = 0;
  std::uint32_t group = 0;
  unsigned digits = 0;
  unsigned padding = 0;
  bool over = false;
  for (const char octet : text) {
    const std::int8_t value = kValues[static_cast<unsigned char>(octet)];
    if (value < 0) continue;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (octet == '=') ++padding;
    if (++digits % 4 != 0 || over) continue;
    if (padding > 2) return 0;
    for (const unsigned shift : {16U, 8U, 0U}) out[size++] = static_cast<char>(group >> shift);
    size -= padding;
    over = padding > 0;
  }
  return digits % 4 == 0 ? size : 0;
}

void append_base64(std::string_view octets, std::string& out) {
  for (; !octets.empty(); octets.remove_prefix(std::min<std::size_t>(3, octets.size()))) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < octets.size() ? static_cast<unsigned char>(octets[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= octets.size() ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
}

}  // namespace clockwise::memcached
