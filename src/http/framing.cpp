#include "http/framing.h"

#include <algorithm>
#include <array>
#include <limits>

#include "http/octets.h"

namespace clockwise::http {
namespace {

bool is_registered_coding(std::string_view name) {
  constexpr std::array<std::string_view, 6> kCodings = {"gzip",       "deflate", "compress",
                                                        "x-compress", "x-gzip",  "identity"};
  return std::any_of(kCodings.begin(), kCodings.end(),
                     [&](std::string_view coding) { return same_ignoring_case(name, coding); });
}

}  // namespace

std::optional<std::uint64_t> content_length(std::string_view value) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (value.empty()) return std::nullopt;
  std::uint64_t length = 0;
  for (const char octet : value) {
    if (!is(octet, kDigit)) return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(octet - '0');
    if (length > (kMax - digit) / 10) return std::nullopt;
    length = length * 10 + digit;
  }
  return length;
}

TransferCoding transfer_coding(std::string_view value) noexcept {
  if (same_ignoring_case(value, "chunked")) return TransferCoding::chunked;
  int chunked = 0;
  bool unknown = false;
  bool chunked_last = false;
  const bool well_formed = each_member(value, [&](std::string_view member) {
    chunked_last = same_ignoring_case(member, "chunked");
    chunked += chunked_last ? 1 : 0;
    unknown |= !chunked_last && !is_registered_coding(member);
    return is_token(member);
  });
  if (!well_formed || chunked > 1) return TransferCoding::malformed;
  return unknown || chunked_last ? TransferCoding::unsupported : TransferCoding::malformed;
}

bool names_no_coding(std::string_view value) noexcept {
  constexpr std::string_view kNear = "chunk";
  const auto is_letter = [](char octet) { return lower(octet) >= 'a' && lower(octet) <= 'z'; };
  if (value.empty() || !std::ranges::all_of(value, is_letter)) return false;
  if (is_registered_coding(value)) return false;
  for (std::size_t at = 0; at + kNear.size() <= value.size(); ++at)
    if (same_ignoring_case(value.substr(at, kNear.size()), kNear)) return false;
  return true;
}

}  // namespace clockwise::http
