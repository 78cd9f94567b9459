// Conditional requests that a stored answer can decide (RFC 9110 section 13, RFC 9111 4.3.2).
//
// Pure. Preconditions that ask about the origin's state (If-Match, If-Unmodified-Since) are not
// decided here: they go to the origin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/directives.h"
#include "cache/lines.h"

namespace clockwise::cache {

// What a stored answer can be told apart by.
struct Validators {
  std::string_view etag;  // as it stands, quotes and W/ included; empty: none
  std::optional<Seconds> last_modified, date;
  Seconds received = 0;
};

// Does the client have it already? Decided by If-None-Match alone where it stands (weak
// comparison), else by If-Modified-Since: an answer without Last-Modified is as old as its Date,
// else as its receipt. True: 304 is due.
[[nodiscard]] bool not_modified(const Lines& if_none_match, const Lines& if_modified_since,
                                const Validators& stored, std::int64_t now);

// If-Range, by strong comparison (RFC 9110 13.1.5): true when the range may be given. Absent: true.
[[nodiscard]] bool range_applies(const Lines& if_range, const Validators& stored, std::int64_t now);

// RFC 9110 8.8.3.2.
[[nodiscard]] bool weak_match(std::string_view a, std::string_view b) noexcept;
[[nodiscard]] bool strong_match(std::string_view a, std::string_view b) noexcept;

}  // namespace clockwise::cache
