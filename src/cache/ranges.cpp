#include "cache/ranges.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "http/octets.h"

namespace clockwise::cache {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 16;

// Digits only; saturating.
std::optional<std::uint64_t> number(std::string_view text) {
  if (text.empty() || !http::all(text, http::kDigit)) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text)
    value = std::min(value * 10 + static_cast<std::uint64_t>(digit - '0'), kMost);
  return value;
}

enum class Kind : std::uint8_t { malformed, unsatisfiable, satisfiable };

// `a-b`, `a-` or `-n`.
Kind read_spec(std::string_view spec, std::uint64_t length, ByteRange& out) {
  const std::size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return Kind::malformed;
  const std::string_view first = spec.substr(0, dash), last = spec.substr(dash + 1);
  if (first.empty()) {
    const auto suffix = number(last);
    if (!suffix) return Kind::malformed;
    if (*suffix == 0 || length == 0) return Kind::unsatisfiable;
    out = {length - std::min(*suffix, length), length - 1};
    return Kind::satisfiable;
  }
  const auto from = number(first);
  const auto to = last.empty() ? std::optional(kMost) : number(last);
  if (!from || !to || *from > *to) return Kind::malformed;
  if (*from >= length) return Kind::unsatisfiable;
  out = {*from, std::min(*to, length - 1)};
  return Kind::satisfiable;
}

// Those that overlap or touch as one.
std::vector<ByteRange> coalesced(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::first);
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    if (!out.empty() && range.first <= out.back().last + 1)
      out.back().last = std::max(out.back().last, range.last);
    else
      out.push_back(range);
  }
  return out;
}

}  // namespace

RangeAnswer ranges_of(std::string_view value, std::uint64_t length) {
  constexpr std::string_view kUnit = "bytes=";
  if (value.size() < kUnit.size() ||
      !http::same_ignoring_case(value.substr(0, kUnit.size()), kUnit))
    return WholeBody{};
  std::vector<ByteRange> ranges;
  std::size_t specs = 0;
  const bool readable = http::each_member(value.substr(kUnit.size()), [&](std::string_view spec) {
    if (spec.empty()) return true;
    ByteRange range;
    const Kind kind = read_spec(spec, length, range);
    if (kind == Kind::satisfiable) ranges.push_back(range);
    return kind != Kind::malformed && ++specs <= kMostRanges;
  });
  if (!readable || specs == 0) return WholeBody{};
  if (ranges.empty()) return Unsatisfiable{};
  return coalesced(std::move(ranges));
}

}  // namespace clockwise::cache
