// May an answer be stored, how long is it fresh, and what may be done with it later (RFC 9111
// sections 3 and 4, RFC 5861, RFC 8246).
//
// Pure: times are arguments, in seconds since 1970 unless they say otherwise. An Answer is taken
// from a head once, a Terms is what is left of it in the store; both are values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/directives.h"
#include "http/head.h"

namespace clockwise::cache {

enum class SetCookie : std::uint8_t { bypass, store, strip };

// What the operator decides where the answer does not.
struct Settings {
  Seconds default_ttl = 0;                // of answers that say nothing
  Seconds negative_ttl = 0;               // the same for 404 and 410
  std::optional<double> heuristic = 0.1;  // share of the age since Last-Modified; nothing: off
  SetCookie set_cookie = SetCookie::bypass;
  bool honour_requests = false;  // max-age, min-fresh, max-stale and no-cache of requests
  Seconds stale_while_revalidate = 0;
  Seconds stale_if_error = 300;
};

// The longest that a guess keeps an answer fresh (RFC 9111 4.2.2 leaves it to us).
inline constexpr Seconds kLongestHeuristic = Seconds{24} * 3600;

// Of a request, what the policy asks.
struct Asked {
  http::Method method = http::Method::get;
  bool has_body = false;
  bool authorization = false;
  Directives control;
};
[[nodiscard]] Asked asked_of(std::string_view octets, const http::RequestHead& head);

// When the request that led to an answer left and when its head came; milliseconds since 1970, so
// that a slow answer is not younger than it is.
struct Moments {
  std::int64_t requested_ms = 0;
  std::int64_t received_ms = 0;
};

// Of an answer, what the policy asks.
struct Answer {
  std::uint16_t status = 200;
  Directives control;
  bool targeted =
      false;  // `control` is of a targeted field: Expires and Cache-Control do not count
  std::optional<Seconds> date, last_modified;  // where they can be read
  std::optional<Seconds> expires;              // kPast where it stands but cannot be read
  Seconds age = 0;
  bool has_etag = false;
  bool set_cookie = false;
  bool vary_on_all = false;  // Vary holds *

  static constexpr Seconds kPast = -kForever;
};
// `targeted` names the targeted fields that count, the first that is valid wins (RFC 9213 2.2).
[[nodiscard]] Answer answer_of(std::string_view octets, const http::ResponseHead& head,
                               std::span<const std::string_view> targeted, const Moments& moments);

// How an answer may be used once it is stored. Kept with every stored answer, so it is small:
// seconds, at most kForever.
struct Terms {
  std::int64_t received_ms = 0;   // by any clock that does not go back; see current_age()
  std::uint32_t initial_age = 0;  // when it was received (4.2.3)
  std::uint32_t lifetime = 0;
  std::uint32_t stale_while_revalidate = 0, stale_if_error = 0;
  bool validate_always : 1 = false;  // no-cache
  bool never_stale : 1 = false;      // must-revalidate and what implies it
  bool immutable : 1 = false;
  bool has_validator : 1 = false;
  bool for_authorized : 1 = false;  // may answer requests with Authorization (3.5)

  friend bool operator==(const Terms&, const Terms&) = default;
};

// Why an answer is not stored.
enum class NotStored : std::uint8_t {
  method,   // neither GET nor HEAD, or a GET with content
  request,  // no-store of the request
  status,   // interim, 206, 304, or one that must-understand refuses
  no_store,
  is_private,
  authorization,  // of the request, and nothing in the answer allows it
  vary,           // *
  set_cookie,
  lifetime,  // nothing says that it may be reused
};

struct Verdict {
  std::optional<NotStored> refused;
  Terms terms;  // when it is stored
  // Of the answer, but not of what is stored: private="…", no-cache="…" and, by `strip`,
  // set-cookie; lower case.
  std::vector<std::string> dropped_fields;
};
[[nodiscard]] Verdict judge(const Asked& asked, const Answer& answer, const Moments& moments,
                            const Settings& settings);

[[nodiscard]] Seconds current_age(const Terms& terms, std::int64_t now_ms) noexcept;

// What a stored answer is good for now.
enum class Use : std::uint8_t {
  fresh,     // as it is
  stale,     // as it is, while one request validates it (RFC 5861 3)
  validate,  // after the origin has confirmed it
};
[[nodiscard]] Use use_of(const Terms& terms, const Asked& asked, std::int64_t now_ms,
                         const Settings& settings) noexcept;

// The origin cannot be reached or answers 500, 502, 503 or 504: may this be given instead?
[[nodiscard]] bool may_stand_in(const Terms& terms, std::int64_t now_ms) noexcept;

// A 2xx or 3xx answer to an unsafe or unknown method: what is stored of that URI is not to be
// trusted any more (4.4).
[[nodiscard]] bool invalidates(http::Method method, unsigned status) noexcept;

}  // namespace clockwise::cache
