// The one date format HTTP writes (IMF-fixdate, RFC 9110 5.6.7).
#pragma once

#include <array>
#include <cstdint>
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

}  // namespace clockwise::http
