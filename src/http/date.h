// The one date format HTTP writes and the three it reads (RFC 9110 5.6.7). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace clockwise::http {

// "Sun, 06 Nov 1994 08:49:37 GMT" in a buffer of its own; write it once a second, not per answer.
class Date {
 public:
  // REQUIRES: seconds since 1970 within the years 0 to 9999.
  explicit Date(std::int64_t unix_seconds) noexcept;

  // Points into this object.
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 29> text_;
};

// Seconds since 1970 of an IMF-fixdate, an RFC 850 date or an asctime date, names and GMT in any
// case; nothing for anything that strays from the three forms: what one cache takes for a date and
// another does not is fresh for one of them only. A weekday must be one, but need not be the right
// one. A two-digit year that lies more than 50 years after `now` is of the century before.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view text,
                                                     std::int64_t now) noexcept;

}  // namespace clockwise::http
