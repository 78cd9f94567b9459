// The field section that requests and responses share: lines, names, Connection, limits.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "http/head.h"

namespace clockwise::http {

// A position in the octets, or why there is none.
struct LineEnd {
  const char* next = nullptr;  // one past the CRLF; null when the line is malformed or cut
  std::string_view fault;
};

// Reads the field lines from `p` up to and with the blank line and records them, offsets counted
// from `head`. Lines above the limit are checked, not recorded. `next` is null and `fault` empty
// when the octets end before the blank line does.
[[nodiscard]] LineEnd scan_fields(const char* head, const char* p, const char* end,
                                  std::vector<FieldLine>& fields, std::size_t max_fields,
                                  bool& too_many);

// True when the octets from `scanned` on change what is known of an incomplete head: its first
// line ended, its blank line came, or a line is malformed. Otherwise `scanned` moves to the end.
// Looks at each octet a fixed number of times, however many calls there are.
[[nodiscard]] bool worth_scanning(std::string_view octets, std::size_t& scanned) noexcept;

// What the Connection lines ask for, RFC 9110 7.6.1.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
};

// Reads all Connection lines and marks what they name as hop-by-hop, except framing, routing and
// the fields that the proxy writes itself. False when they list more than `max_options`: matching
// names against lines would no longer be cheap.
[[nodiscard]] bool read_connection(std::string_view head, std::vector<FieldLine>& fields,
                                   std::size_t max_options, ConnectionOptions& options) noexcept;

// HTTP/1.1 stays open unless told otherwise, HTTP/1.0 the other way round (RFC 9112 9.3).
[[nodiscard]] constexpr bool keeps_alive(const ConnectionOptions& options, unsigned minor) {
  return !options.close && (minor > 0 || options.keep_alive);
}

inline Progress refuse(Refusal& refusal, std::uint16_t status, HeadError reason,
                       std::string_view text) {
  refusal = {status, reason, text};
  return Progress::refused;
}

}  // namespace clockwise::http
