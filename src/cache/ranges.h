// Byte ranges of a stored whole (RFC 9110 section 14). Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace clockwise::cache {

struct ByteRange {
  std::uint64_t first = 0, last = 0;  // both included

  [[nodiscard]] std::uint64_t size() const noexcept { return last - first + 1; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct WholeBody {};      // 200: no range, an unknown unit, a malformed or an abusive set
struct Unsatisfiable {};  // 416
// What a Range asks for: one range is a 206 of its own, several are multipart/byteranges.
using RangeAnswer = std::variant<WholeBody, Unsatisfiable, std::vector<ByteRange>>;

// At most so many parts are given; a request for more gets the whole.
inline constexpr std::size_t kMostRanges = 32;

// `value`: of the only Range line. Ranges that overlap or touch are given as one, in the order of
// the body (RFC 9110 15.3.7.2 allows it); a set that would cost more than the whole is the whole.
[[nodiscard]] RangeAnswer ranges_of(std::string_view value, std::uint64_t length);

}  // namespace clockwise::cache
