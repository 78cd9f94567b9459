// The answers the proxy gives by itself: what is wrong with a request, or why no server answered.
//
// Small, of known length, and silent about versions and addresses. RFC 9209 says in Proxy-Status
// what went wrong, so that an operator sees it in the client's trace too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/head.h"

namespace clockwise::http {

struct Reply {
  std::uint16_t status = 500;
  std::string_view text = {};  // one sentence for the body; empty: the reason phrase stands alone
  // An error type of RFC 9209 2.3, "connection_timeout"; may be empty.
  std::string_view proxy_error = {};
  std::string_view allow = {};    // of a 405: the methods there are; empty: those of a proxy
  std::uint32_t retry_after = 0;  // seconds; 0: no Retry-After
  std::uint8_t client_minor_version = 1;
  bool json = false;            // RequestHead::accepts_json
  bool head = false;            // answer to HEAD: lengths as for GET, no body
  bool close = true;            // the connection is closed after it
  std::string_view date = {};   // IMF-fixdate; empty: no Date
  std::string_view extra = {};  // whole lines with CRLF
};

// Replaces what `out` holds by the whole answer; its memory is reused.
void render(const Reply& reply, std::string& out);

// "Bad Request"; "Error" for a status that has no entry.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

}  // namespace clockwise::http
