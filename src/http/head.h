// Request and response heads, scanned in place.
//
// One pass over the received octets checks everything that RFC 9110 and 9112 ask of a head and
// records where each field line stands, so that the lines which go on can be relayed as received
// (http/rewrite.h). Nothing is copied; views and offsets point into the caller's buffer, which must
// outlive them. Pure: same octets, same answer, however they were split.
//
// Stricter than most: no bare CR or LF, no NUL, no folded line, no blank before a colon. What two
// parsers could read differently is refused, never repaired (RFC 9112 section 11.2). After a
// refusal nobody knows where the next message begins: answer, then close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clockwise::http {

// The fields that a proxy itself must know; everything else is `other`.
enum class Field : std::uint8_t {
  other,
  host,
  content_length,
  transfer_encoding,
  expect,
  max_forwards,
  connection,
  keep_alive,
  proxy_connection,
  te,
  trailer,
  upgrade,
  http2_settings,
  via,
  x_forwarded_for,
  x_forwarded_proto,
  x_forwarded_host,
  x_forwarded_other,
  forwarded,
  x_request_id,
  accept,
  date,
};

// One field line. Offsets count from the first octet of the head.
struct FieldLine {
  std::uint32_t begin;  // first octet of the name
  std::uint32_t end;    // one past the CRLF
  std::uint32_t value;  // first octet of the value, blanks around it left out
  std::uint32_t value_size;
  std::uint16_t name_size;
  Field id;
  bool hop_by_hop;  // not relayed: hop-by-hop by RFC 9110 7.6.1, or named in Connection
};

enum class Method : std::uint8_t {
  get,
  head,
  post,
  put,
  del,
  options,
  trace,
  connect,
  patch,
  other
};

// GET or HEAD: what asks for a thing and does nothing to it (RFC 9110 9.3.1, 9.3.2).
[[nodiscard]] constexpr bool is_read(Method m) noexcept {
  return m == Method::get || m == Method::head;
}

// RFC 9110 9.2.2. PATCH, POST and unknown methods are not.
[[nodiscard]] constexpr bool is_idempotent(Method m) noexcept {
  return is_read(m) || m == Method::put || m == Method::del || m == Method::options ||
         m == Method::trace;
}

enum class BodyKind : std::uint8_t { none, length, chunked, until_close };

struct Body {
  BodyKind kind = BodyKind::none;
  std::uint64_t length = 0;  // for BodyKind::length
};

// Why a head cannot be served; `status` is what the client should be told. CONNECT and TRACE are
// always refused (405): this proxy opens no tunnels, and an echo of what it adds helps only a spy.
enum class HeadError : std::uint8_t { malformed, framing, header_too_large, uri_too_long, method };

struct Refusal {
  std::uint16_t status = 400;  // 400, 405, 414, 417, 431, 501, 505
  HeadError reason = HeadError::malformed;
  std::string_view text;  // static, for the body of the answer: "two Host fields"
};

struct HeadLimits {
  std::uint32_t size = 32 * 1024;  // octets of the head, blank line included
  std::uint32_t fields = 100;
  std::uint32_t target = UINT32_MAX;  // octets of a request target
};

enum class Progress : std::uint8_t { complete, incomplete, refused };

struct RequestHead {
  std::string_view method;
  std::string_view target;  // as received
  std::string_view uri;     // path and query of the target, origin-form: what is hashed and sent.
                            // "*" for OPTIONS *; "/" for an absolute target without a path
                            // ("*" for OPTIONS, RFC 9112 3.2.4)
  std::string_view authority;  // from an absolute-form target, else the Host value; empty for
                               // HTTP/1.0 without Host, and where the client sent an empty one
  Method method_id = Method::other;
  bool absolute_form = false;  // Host upstream must be written anew from `authority`
  bool origin_line = false;    // request line may be relayed as received (origin-form, HTTP/1.1)
  std::uint8_t minor_version = 1;  // 0 or 1; HTTP/1.2 and up count as 1
  bool keep_alive = true;          // the client wants the connection kept (RFC 9112 9.3)
  bool accepts_json = false;       // prefers application/json over text/plain, for our own errors
  std::int32_t max_forwards = -1;  // OPTIONS only (TRACE is refused); -1: absent
  Body body;
  std::uint32_t line_end = 0;     // one past the CRLF of the request line
  std::uint32_t size = 0;         // of the whole head, blank line included
  std::vector<FieldLine> fields;  // reused between requests: cleared, never shrunk
  Refusal refusal;                // for Progress::refused
  std::string own_uri;  // the text behind `uri` where the buffer has no such run of octets
                        // (http://h?q). Moving the head keeps `uri` valid, copying it does not
};

// Scans `input`, which begins where a request head must begin. Leading empty lines are the caller's
// to skip (leading_blank_lines below). On `incomplete` call again with more octets; an error that
// is already certain is reported at once (first line invalid, limit passed). `scanned` makes
// repeated calls linear: pass 0 for a new head, then the same variable again. It is all that is
// kept between calls: `head` may serve other connections in between. A line is judged once its LF
// is there and the message once its blank line is, so the answer depends on the octets alone.
[[nodiscard]] Progress scan_request(std::string_view input, const HeadLimits& limits,
                                    RequestHead& head, std::size_t& scanned);

// Octets of CRLF before a request line, which RFC 9112 2.2 asks to skip. Counts whole CRLFs only.
[[nodiscard]] std::size_t leading_blank_lines(std::string_view input) noexcept;

struct ResponseHead {
  std::uint16_t status = 0;
  std::uint8_t minor_version = 1;
  bool keep_alive = true;  // the server will keep the connection: framing permitting, see `body`
  bool reusable = true;    // false when framing was in doubt (Content-Length beside chunked)
  Body body;               // as RFC 9112 6.3 decides, given the method of the request
  std::uint32_t reason_end = 0;  // end of the status line without its CRLF
  std::uint32_t line_end = 0;
  std::uint32_t size = 0;
  std::vector<FieldLine> fields;
  Refusal refusal;  // what was wrong, for the log and the 502
};

// Scans the head of an answer to `request_method`, as scan_request does. Refused: a status outside
// 100 to 599, any other transfer coding than exactly chunked, unless it is a lone word that names
// no coding (the body then ends with the connection), chunked in HTTP/1.0, a Content-Length that is
// malformed or stands there twice. Content-Length beside chunked: chunked wins, but the
// connection is not `reusable`. A 1xx, 204 or 304 and an answer to HEAD have no body whatever their
// fields say.
[[nodiscard]] Progress scan_response(std::string_view input, const HeadLimits& limits,
                                     Method request_method, ResponseHead& head,
                                     std::size_t& scanned);

[[nodiscard]] inline std::string_view value_of(std::string_view head, const FieldLine& line) {
  return head.substr(line.value, line.value_size);
}
[[nodiscard]] inline std::string_view name_of(std::string_view head, const FieldLine& line) {
  return head.substr(line.begin, line.name_size);
}

}  // namespace clockwise::http
