#include "memcached/number.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace clockwise::memcached {
namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;

// isspace() of the C locale; a word has no blank in it.
constexpr bool is_space(char octet) noexcept { return octet >= '\t' && octet <= '\r'; }

struct Integer {
  bool negative = false;
  std::uint64_t magnitude = 0;
};

bool read_integer(std::string_view word, Integer& integer) noexcept {
  word.remove_prefix(
      static_cast<std::size_t>(std::ranges::find_if_not(word, is_space) - word.begin()));
  integer.negative = word.starts_with('-');
  if (integer.negative || word.starts_with('+')) word.remove_prefix(1);
  const char* const begin = word.data();
  const char* const end = begin + word.size();
  const auto [stopped, error] = std::from_chars(begin, end, integer.magnitude);
  return error == std::errc{} && (stopped == end || is_space(*stopped));
}

// What strtol() takes, in 64 bits.
bool read_signed(std::string_view word, std::int64_t& number) noexcept {
  Integer integer;
  if (!read_integer(word, integer)) return false;
  number = static_cast<std::int64_t>(integer.negative ? -integer.magnitude : integer.magnitude);
  return integer.magnitude < kHalf || (integer.negative && integer.magnitude == kHalf);
}

}  // namespace

// As strtoull() does it, a number below zero is taken from 2^64; what is still below zero as a
// signed number then is refused.
bool read_number(std::string_view word, std::uint64_t& number) noexcept {
  Integer integer;
  if (!read_integer(word, integer)) return false;
  number = integer.negative ? -integer.magnitude : integer.magnitude;
  return !integer.negative || number < kHalf;
}

bool read_number(std::string_view word, std::uint32_t& number) noexcept {
  std::uint64_t wide = 0;
  if (!read_number(word, wide)) return false;
  number = static_cast<std::uint32_t>(wide);
  return true;
}

bool read_number(std::string_view word, std::int32_t& number) noexcept {
  std::int64_t wide = 0;
  if (!read_signed(word, wide)) return false;
  number = static_cast<std::int32_t>(wide);
  return true;
}

bool read_length(std::string_view word, std::int32_t& number) noexcept {
  std::int64_t wide = 0;
  if (!read_signed(word, wide)) return false;
  number = static_cast<std::int32_t>(wide);
  return number == wide;
}

}  // namespace clockwise::memcached
