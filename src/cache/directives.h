// Cache directives as they stand in Cache-Control (RFC 9111 section 5.2) and in a targeted field
// such as CDN-Cache-Control (RFC 9213), brought into one form.
//
// Pure. Where a text leaves doubt the answer is the one under which less is stored and less is
// fresh: a lifetime that cannot be read is 0, of two the smaller counts, a restriction with a
// senseless argument still restricts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clockwise::cache {

// Seconds, never more than kForever (RFC 9111 1.2.2).
using Seconds = std::int64_t;
inline constexpr Seconds kForever = Seconds{1} << 31;

struct Directives {
  std::optional<Seconds> max_age, s_maxage;
  std::optional<Seconds> stale_while_revalidate, stale_if_error;  // RFC 5861
  std::optional<Seconds> min_fresh, max_stale;                    // requests; kForever: any
  bool no_store = false;
  bool no_cache = false;                     // whole; see no_cache_fields
  bool is_private = false;                   // whole; see private_fields
  std::vector<std::string> no_cache_fields;  // reused without these unless validated (5.2.2.4)
  std::vector<std::string> private_fields;   // stored without these (5.2.2.7); names in lower case
  bool is_public = false;
  bool must_revalidate = false, proxy_revalidate = false;
  bool must_understand = false;
  bool immutable = false;  // RFC 8246
  bool no_transform = false;
  bool only_if_cached = false;  // requests

  friend bool operator==(const Directives&, const Directives&) = default;
};

// All lines of Cache-Control, in their order; none gives what an empty one does.
[[nodiscard]] Directives parse_cache_control(std::span<const std::string_view> lines);

// All lines of a targeted field. Nothing when it is absent, empty or not what RFC 9213 section 2.1
// asks for: it is ignored as a whole then, and Cache-Control rules.
[[nodiscard]] std::optional<Directives> parse_targeted(std::span<const std::string_view> lines);

// A delta-seconds (1.2.2): digits only, saturating; nothing for anything else.
[[nodiscard]] std::optional<Seconds> parse_seconds(std::string_view text) noexcept;

}  // namespace clockwise::cache
