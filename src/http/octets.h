// Octet classes of RFC 9110 and 9112, and the few loops that run over every octet of a head.
//
// One table answers every class; runs of ordinary octets are skipped sixteen at a time where the
// machine has SSE2 (every x86-64), one at a time elsewhere. Pure.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace clockwise::http {

enum OctetClass : std::uint8_t {
  kToken = 1,    // tchar, RFC 9110 5.6.2
  kTarget = 2,   // what we let pass in a request target: visible or 8-bit, no fragment
  kRegName = 4,  // reg-name of RFC 3986 without "%" and without ",", a list separator to others
  kText = 8,     // field-content, reason phrase: HTAB, SP, visible, 8-bit
  kQuoted = 16,  // qdtext, RFC 9110 5.6.4
  kBlank = 32,   // OWS: SP, HTAB
  kDigit = 64,
};

namespace detail {

constexpr bool one_of(unsigned c, std::string_view set) {
  return c < 0x80 && set.find(static_cast<char>(c)) != std::string_view::npos;
}

constexpr std::array<std::uint8_t, 256> make_octet_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool digit = c >= '0' && c <= '9';
    const bool alnum = digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool visible = (c > 0x20 && c < 0x7f) || c >= 0x80;
    const bool blank = c == ' ' || c == '\t';
    unsigned bits = 0;
    if (alnum || one_of(c, "!#$%&'*+-.^_`|~")) bits |= kToken;
    if (visible && c != '#') bits |= kTarget;
    if (alnum || one_of(c, "-._~!$&'()*+;=")) bits |= kRegName;
    if (visible || blank) bits |= kText;
    if ((visible && c != '"' && c != '\\') || blank) bits |= kQuoted;
    if (blank) bits |= kBlank;
    if (digit) bits |= kDigit;
    classes[c] = static_cast<std::uint8_t>(bits);
  }
  return classes;
}

inline constexpr std::array<std::uint8_t, 256> kOctetClasses = make_octet_classes();

}  // namespace detail

[[nodiscard]] constexpr bool is(char octet, OctetClass wanted) noexcept {
  return (detail::kOctetClasses.data()[static_cast<unsigned char>(octet)] & wanted) != 0;
}

[[nodiscard]] constexpr bool all(std::string_view text, OctetClass wanted) noexcept {
  for (const char octet : text) {
    if (!is(octet, wanted)) return false;
  }
  return true;
}

[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && all(text, kToken);
}

// The value of a hex digit; -1 for anything else.
[[nodiscard]] constexpr int hex_value(char octet) noexcept {
  if (octet >= '0' && octet <= '9') return octet - '0';
  const int letter = octet | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// The first octet in [p, end) that is not of the class; `end` when there is none.
[[nodiscard]] inline const char* skip(const char* p, const char* end, OctetClass wanted) noexcept {
  while (p != end && is(*p, wanted)) ++p;
  return p;
}

#if defined(__SSE2__)
namespace detail {

inline __m128i load(const char* p) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// All ones in each octet of `v` that lies in [first, first + span], as unsigned numbers.
inline __m128i within(__m128i v, char first, char span) noexcept {
  const __m128i from_first = _mm_sub_epi8(v, _mm_set1_epi8(first));
  return _mm_cmpeq_epi8(_mm_min_epu8(from_first, _mm_set1_epi8(span)), from_first);
}

inline unsigned mask_of(__m128i v) noexcept { return static_cast<unsigned>(_mm_movemask_epi8(v)); }

inline unsigned controls(__m128i v) noexcept {
  return mask_of(_mm_or_si128(within(v, 0, 0x1f), _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f))));
}

}  // namespace detail
#endif

// The first octet in [p, end) that is not a token octet; `end` when there is none.
[[nodiscard]] inline const char* skip_token(const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  // Letters, digits and hyphens make nearly every name; the table judges what else there is.
  if (end - p >= 16) {
    const __m128i v = detail::load(p);
    const __m128i letter = detail::within(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 25);
    const __m128i digit = detail::within(v, '0', 9);
    const __m128i hyphen = _mm_cmpeq_epi8(v, _mm_set1_epi8('-'));
    const __m128i usual = _mm_or_si128(_mm_or_si128(letter, digit), hyphen);
    p += std::countr_one(detail::mask_of(usual));
  }
#endif
  return skip(p, end, kToken);
}

// The first octet in [p, end) that is not visible text, SP, HTAB or 8-bit; `end` when there is
// none. `begin` <= p is where the buffer begins: octets from there on may be read.
[[nodiscard]] inline const char* skip_text(const char* begin, const char* p,
                                           const char* end) noexcept {
#if defined(__SSE2__)
  while (end - p >= 16) {
    const unsigned found = detail::controls(detail::load(p));
    if (found == 0) {
      p += 16;
      continue;
    }
    p += std::countr_zero(found);
    if (*p != '\t') return p;
    ++p;
  }
  if (p != end && end - begin >= 16) {
    // The last sixteen octets once more, those before p left out.
    const unsigned found = detail::controls(detail::load(end - 16)) >> (16 - (end - p));
    if (found == 0) return end;
    p += std::countr_zero(found);
    if (*p != '\t') return p;
  }
#else
  static_cast<void>(begin);
#endif
  return skip(p, end, kText);
}

// The first octet in [p, end) that may not stand in a request target; `end` when there is none.
[[nodiscard]] inline const char* skip_target(const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  while (end - p >= 16) {
    const __m128i v = detail::load(p);
    const __m128i hash = _mm_cmpeq_epi8(v, _mm_set1_epi8('#'));
    const unsigned found = detail::controls(v) | detail::mask_of(_mm_or_si128(
                                                     hash, _mm_cmpeq_epi8(v, _mm_set1_epi8(' '))));
    if (found != 0) return p + std::countr_zero(found);
    p += 16;
  }
#endif
  return skip(p, end, kTarget);
}

[[nodiscard]] constexpr char lower(char octet) noexcept {
  return octet >= 'A' && octet <= 'Z' ? static_cast<char>(octet | 0x20) : octet;
}

// Writes `text` in lower case from `out` on, eight octets at a time. Returns the end of it.
inline char* copy_lower(std::string_view text, char* out) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    // Whether an octet is one of A to Z shows in its eighth bit; none carries into the next.
    const std::uint64_t low = word & (kEach * 0x7f);
    const std::uint64_t from_a = low + kEach * (0x80 - 'A');
    const std::uint64_t beyond_z = low + kEach * (0x7f - 'Z');
    word |= (from_a & ~beyond_z & ~word & (kEach * 0x80)) >> 2;
    std::memcpy(out, &word, sizeof word);
    out += sizeof word;
    text.remove_prefix(sizeof word);
  }
  for (const char octet : text) *out++ = lower(octet);
  return out;
}

[[nodiscard]] constexpr bool same_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// True when `name` is `wanted`, which is lower case, in any case. REQUIRES: `name` holds as many
// octets, none of them a control: setting bit 5 makes letters lower case and turns only controls
// into digits or hyphens. Words are compared, not octets.
template <std::size_t N>
[[nodiscard]] inline bool is_name(const char* name, const char (&wanted)[N]) noexcept {
  constexpr std::size_t kSize = N - 1;
  using Word = std::conditional_t<(kSize >= 8), std::uint64_t,
                                  std::conditional_t<(kSize >= 4), std::uint32_t, std::uint16_t>>;
  constexpr auto kBit5 = static_cast<Word>(0x2020202020202020U);
  const auto differ = [&](std::size_t at) {
    Word a;
    Word b;
    std::memcpy(&a, name + at, sizeof a);
    std::memcpy(&b, wanted + at, sizeof b);
    return static_cast<Word>((a | kBit5) ^ b);
  };
  Word difference = differ(kSize - sizeof(Word));
  for (std::size_t at = 0; at + sizeof(Word) < kSize; at += sizeof(Word)) {
    difference = static_cast<Word>(difference | differ(at));
  }
  return difference == 0;
}

[[nodiscard]] constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is(text.front(), kBlank)) text.remove_prefix(1);
  while (!text.empty() && is(text.back(), kBlank)) text.remove_suffix(1);
  return text;
}

// Takes the octets at the front of `text` that `wanted` admits off it.
template <class Predicate>
constexpr std::string_view take_while(std::string_view& text, Predicate wanted) noexcept {
  std::size_t size = 0;
  while (size < text.size() && wanted(text[size])) ++size;
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

// Calls `f` with each piece of `list` between separators, empty ones too, until it says false. True
// when it never did.
template <class F>
constexpr bool each_piece(std::string_view list, char separator, F f) {
  while (true) {
    const std::size_t end = list.find(separator);
    if (!f(list.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    list.remove_prefix(end + 1);
  }
}

// The same for a comma-separated list, its members trimmed. For lists without quoted strings.
template <class F>
constexpr bool each_member(std::string_view list, F f) {
  return each_piece(list, ',', [&f](std::string_view member) { return f(trim(member)); });
}

}  // namespace clockwise::http
