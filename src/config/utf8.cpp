#include "config/utf8.h"

#include <array>
#include <cstdint>

namespace clockwise::config::utf8 {
namespace {

std::uint32_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<unsigned char>(text[at]);
}

// Length of the sequence that a first byte announces; 0: it announces none.
std::size_t announced_length(std::uint32_t first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

bool is_overlong_or_surrogate(std::uint32_t code, std::size_t length) noexcept {
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  return code < smallest[length] || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff;
}

void append(std::string& out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::string from_utf16(std::string_view bytes, bool big_endian) {
  const auto unit = [&](std::size_t at) {
    const std::uint32_t a = byte_at(bytes, at);
    const std::uint32_t b = byte_at(bytes, at + 1);
    return big_endian ? (a << 8 | b) : (b << 8 | a);
  };
  std::string out;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    const bool high = code >= 0xd800 && code <= 0xdbff;
    if (high && at + 3 < bytes.size() && (unit(at + 2) & 0xfc00) == 0xdc00) {
      code = 0x10000 + ((code & 0x3ff) << 10) + (unit(at + 2) & 0x3ff);
      at += 2;
    }
    if (code >= 0xd800 && code <= 0xdfff)
      out += '\xff';
    else
      append(out, code);
  }
  if (bytes.size() % 2 != 0) out += '\xff';  // half a unit: the file was cut
  return out;
}

}  // namespace

Decoded decode(std::string_view text) noexcept {
  const std::uint32_t first = byte_at(text, 0);
  const std::size_t length = announced_length(first);
  if (length == 0 || length > text.size()) return {};
  if (length == 1) return {.code = first, .length = 1, .valid = true};
  std::uint32_t code = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte_at(text, i) & 0x3f);
  }
  if (is_overlong_or_surrogate(code, length)) return {};
  return {.code = code, .length = length, .valid = true};
}

std::string_view slice(std::string_view text, std::size_t first, std::size_t count) noexcept {
  const auto skip = [](std::string_view from, std::size_t characters) {
    std::size_t at = 0;
    for (; characters > 0 && at < from.size(); --characters) at += decode(from.substr(at)).length;
    return at;
  };
  text.remove_prefix(skip(text, first));
  return text.substr(0, skip(text, count));
}

std::size_t length(std::string_view text) noexcept {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); at += decode(text.substr(at)).length) ++characters;
  return characters;
}

bool is_printable(char32_t code) noexcept {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool separator = code == 0x2028 || code == 0x2029;
  const bool reorders = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !control && !separator && !reorders;
}

bool is_one_line(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const Decoded next = decode(text.substr(at));
    if (!next.valid || !is_printable(next.code)) return false;
    at += next.length;
  }
  return true;
}

std::string from_marked(std::string bytes) {
  const std::string_view view = bytes;
  if (view.starts_with("\xef\xbb\xbf")) return std::string(view.substr(3));
  if (view.starts_with("\xfe\xff")) return from_utf16(view.substr(2), true);
  if (view.starts_with("\xff\xfe")) return from_utf16(view.substr(2), false);
  return bytes;
}

}  // namespace clockwise::config::utf8
