#include <algorithm>
#include <cstring>

#include "http/fields.h"
#include "http/framing.h"
#include "http/head.h"
#include "http/octets.h"

namespace clockwise::http {
namespace {

constexpr std::string_view kVersionPrefix = "HTTP/1.";
constexpr std::size_t kStatusEnd = 12;  // "HTTP/1.1 200"

Progress malformed(ResponseHead& head, std::string_view text) {
  return refuse(head.refusal, 502, HeadError::malformed, text);
}

Progress bad_framing(ResponseHead& head, std::string_view text) {
  return refuse(head.refusal, 502, HeadError::framing, text);
}

void clear(ResponseHead& head) {
  head.status = 0;
  head.minor_version = 1;
  head.keep_alive = head.reusable = true;
  head.body = {};
  head.reason_end = head.line_end = head.size = 0;
  head.fields.clear();
  head.refusal = {};
}

// `HTTP/1.x SP 3DIGIT [ SP reason ] CRLF`. Null when it is not.
const char* read_status_line(const char* begin, const char* end, ResponseHead& head) {
  if (end - begin < static_cast<std::ptrdiff_t>(kStatusEnd) + 2 || !is(begin[7], kDigit) ||
      begin[8] != ' ' || !is(begin[9], kDigit) || !is(begin[10], kDigit) ||
      !is(begin[11], kDigit)) {
    return nullptr;
  }
  head.minor_version = begin[7] == '0' ? 0 : 1;
  head.status = static_cast<std::uint16_t>((begin[9] - '0') * 100 + (begin[10] - '0') * 10 +
                                           (begin[11] - '0'));
  const char* cr = begin + kStatusEnd;
  if (*cr == ' ') cr = skip_text(begin, cr, end);
  if (end - cr < 2 || cr[0] != '\r' || cr[1] != '\n') return nullptr;
  if (head.status < 100 || head.status > 599) return nullptr;
  head.reason_end = static_cast<std::uint32_t>(cr - begin);
  head.line_end = head.reason_end + 2;
  return cr + 2;
}

struct Framing {
  const FieldLine* length = nullptr;
  const FieldLine* coding = nullptr;
  std::string_view twice;
  bool connection = false;
};

Framing find_framing(const ResponseHead& head) {
  Framing found;
  for (const FieldLine& line : head.fields) {
    if (line.id == Field::content_length) {
      if (found.length != nullptr) found.twice = "two Content-Length fields";
      found.length = &line;
    } else if (line.id == Field::transfer_encoding) {
      if (found.coding != nullptr) found.twice = "two Transfer-Encoding fields";
      found.coding = &line;
    } else if (line.id == Field::connection) {
      found.connection = true;
    }
  }
  return found;
}

bool never_has_body(const ResponseHead& head, Method request_method) {
  return request_method == Method::head || head.status < 200 || head.status == 204 ||
         head.status == 304;
}

// RFC 9112 6.3.
Progress read_body(std::string_view octets, const Framing& found, Method request_method,
                   ResponseHead& head) {
  if (!found.twice.empty()) return bad_framing(head, found.twice);
  Body body{BodyKind::until_close, 0};
  if (found.length != nullptr) {
    const auto length = content_length(value_of(octets, *found.length));
    if (!length) return bad_framing(head, "invalid Content-Length");
    body = {BodyKind::length, *length};
  }
  if (found.coding != nullptr) {
    if (head.minor_version == 0) return bad_framing(head, "Transfer-Encoding in HTTP/1.0");
    const std::string_view coding = value_of(octets, *found.coding);
    if (transfer_coding(coding) == TransferCoding::chunked) {
      body = {BodyKind::chunked, 0};
    } else if (found.length != nullptr || !names_no_coding(coding)) {
      return bad_framing(head, "transfer coding not supported");
    }
    head.reusable = found.length == nullptr;
  }
  head.body = never_has_body(head, request_method) ? Body{} : body;
  return Progress::complete;
}

Progress judge(std::string_view octets, const HeadLimits& limits, Method request_method,
               ResponseHead& head) {
  const Framing found = find_framing(head);
  if (read_body(octets, found, request_method, head) == Progress::refused) {
    return Progress::refused;
  }
  ConnectionOptions options;
  if (found.connection && !read_connection(octets, head.fields, limits.fields, options)) {
    return refuse(head.refusal, 502, HeadError::header_too_large, "too many Connection options");
  }
  head.keep_alive =
      keeps_alive(options, head.minor_version) && head.body.kind != BodyKind::until_close;
  return Progress::complete;
}

Progress scan_whole(std::string_view octets, const HeadLimits& limits, Method request_method,
                    ResponseHead& head) {
  clear(head);
  const std::size_t known = std::min(octets.size(), kVersionPrefix.size());
  if (std::memcmp(octets.data(), kVersionPrefix.data(), known) != 0) {
    return malformed(head, "not an HTTP/1 answer");
  }
  const char* const begin = octets.data();
  const char* const end = begin + octets.size();
  const char* const fields = read_status_line(begin, end, head);
  if (fields == nullptr) {
    if (octets.find('\n') == std::string_view::npos) return Progress::incomplete;
    return malformed(head, "malformed status line");
  }
  bool too_many = false;
  const LineEnd blank = scan_fields(begin, fields, end, head.fields, limits.fields, too_many);
  if (blank.next == nullptr) {
    return blank.fault.empty() ? Progress::incomplete : malformed(head, blank.fault);
  }
  if (too_many) return refuse(head.refusal, 502, HeadError::header_too_large, "too many fields");
  head.size = static_cast<std::uint32_t>(blank.next - begin);
  return judge(octets, limits, request_method, head);
}

}  // namespace

Progress scan_response(std::string_view input, const HeadLimits& limits, Method request_method,
                       ResponseHead& head, std::size_t& scanned) {
  const std::string_view octets = input.substr(0, limits.size);
  if (octets.empty()) return Progress::incomplete;
  // Nothing but HTTP begins so; told apart before a line end that may never come.
  if (scanned < kVersionPrefix.size() || octets.size() == limits.size ||
      worth_scanning(octets, scanned)) {
    const Progress progress = scan_whole(octets, limits, request_method, head);
    if (progress != Progress::incomplete) {
      scanned = 0;
      return progress;
    }
    scanned = octets.size();
  }
  if (octets.size() < limits.size) return Progress::incomplete;
  return refuse(head.refusal, 502, HeadError::header_too_large, "head too large");
}

}  // namespace clockwise::http
