#include <algorithm>
#include <cstring>
#include <limits>

#include "http/accept.h"
#include "http/authority.h"
#include "http/fields.h"
#include "http/framing.h"
#include "http/head.h"
#include "http/octets.h"

namespace clockwise::http {
namespace {

constexpr std::string_view kVersion11 = "HTTP/1.1\r\n";

Progress malformed(RequestHead& head, std::string_view text) {
  return refuse(head.refusal, 400, HeadError::malformed, text);
}

Progress bad_framing(RequestHead& head, std::string_view text, std::uint16_t status = 400) {
  return refuse(head.refusal, status, HeadError::framing, text);
}

Method method_of(std::string_view name) noexcept {
  switch (name.size()) {
    case 3:
      if (name == "GET") return Method::get;
      return name == "PUT" ? Method::put : Method::other;
    case 4:
      if (name == "POST") return Method::post;
      return name == "HEAD" ? Method::head : Method::other;
    case 5:
      if (name == "PATCH") return Method::patch;
      return name == "TRACE" ? Method::trace : Method::other;
    case 6:
      return name == "DELETE" ? Method::del : Method::other;
    case 7:
      if (name == "OPTIONS") return Method::options;
      return name == "CONNECT" ? Method::connect : Method::other;
    default:
      return Method::other;
  }
}

void clear(RequestHead& head) {
  head.method = head.target = head.uri = head.authority = {};
  head.method_id = Method::other;
  head.absolute_form = head.origin_line = false;
  head.minor_version = 1;
  head.keep_alive = true;
  head.accepts_json = false;
  head.max_forwards = -1;
  head.body = {};
  head.line_end = head.size = 0;
  head.fields.clear();
  head.refusal = {};
}

// Reads `HTTP-version CRLF` where it is not plain HTTP/1.1; null and a refusal for what it is not.
const char* odd_version(const char* p, const char* end, RequestHead& head) {
  const std::string_view rest(p, std::min<std::size_t>(kVersion11.size(), end - p));
  if (rest.size() < kVersion11.size() || !rest.starts_with("HTTP/") || !is(rest[5], kDigit) ||
      rest[6] != '.' || !is(rest[7], kDigit) || !rest.ends_with("\r\n")) {
    malformed(head, "malformed request line");
    return nullptr;
  }
  if (rest[5] != '1') {
    refuse(head.refusal, 505, HeadError::malformed, "HTTP version not supported");
    return nullptr;
  }
  head.minor_version = rest[7] == '0' ? 0 : 1;
  return p + kVersion11.size();
}

// `method SP request-target SP HTTP-version CRLF`; null and a refusal when it is not.
const char* read_request_line(const char* begin, const char* end, RequestHead& head) {
  const char* const method_end = skip_token(begin, end);
  if (method_end == begin || method_end == end || *method_end != ' ') {
    malformed(head, "malformed method");
    return nullptr;
  }
  head.method = {begin, static_cast<std::size_t>(method_end - begin)};
  head.method_id = method_of(head.method);

  const char* const target = method_end + 1;
  const char* const target_end = skip_target(target, end);
  if (target_end == target || target_end == end || *target_end != ' ') {
    malformed(head, target_end != end && *target_end == '#' ? "fragment in the request target"
                                                            : "malformed request line");
    return nullptr;
  }
  head.target = {target, static_cast<std::size_t>(target_end - target)};

  const char* const version = target_end + 1;
  if (end - version >= 10 && std::memcmp(version, kVersion11.data(), 10) == 0) [[likely]] {
    head.origin_line = true;
    return version + kVersion11.size();
  }
  return odd_version(version, end, head);
}

std::size_t scheme_size(std::string_view target) noexcept {
  if (same_ignoring_case(target.substr(0, 7), "http://")) return 7;
  if (same_ignoring_case(target.substr(0, 8), "https://")) return 8;
  return 0;
}

Progress read_absolute_target(RequestHead& head, std::size_t scheme) {
  const std::size_t path = std::min(head.target.find_first_of("/?", scheme), head.target.size());
  head.authority = head.target.substr(scheme, path - scheme);
  if (!is_authority(head.authority)) return malformed(head, "invalid authority in the target");
  head.absolute_form = true;
  head.origin_line = false;
  head.uri = head.target.substr(path);
  if (head.uri.empty()) {
    head.uri = head.method_id == Method::options ? "*" : "/";
  } else if (head.uri.front() == '?') {
    head.own_uri.reserve(64);  // beyond the small-string buffer, whose address moves with the head
    head.own_uri.assign(1, '/').append(head.uri);
    head.uri = head.own_uri;
  }
  return Progress::complete;
}

Progress read_target(RequestHead& head) {
  if (head.method_id == Method::connect || head.method_id == Method::trace) {
    return refuse(head.refusal, 405, HeadError::method, "method not allowed");
  }
  head.uri = head.target;
  if (head.target.front() == '/') [[likely]]
    return Progress::complete;
  if (head.target == "*") {
    if (head.method_id == Method::options) return Progress::complete;
    return malformed(head, "target * is for OPTIONS");
  }
  if (const std::size_t scheme = scheme_size(head.target); scheme != 0) {
    return read_absolute_target(head, scheme);
  }
  return malformed(head, "request target is neither a path nor an http URI");
}

// What is written more than once where once is the rule, and where the rest stands.
struct Found {
  const FieldLine* host = nullptr;
  const FieldLine* length = nullptr;
  const FieldLine* coding = nullptr;
  const FieldLine* accept = nullptr;
  const FieldLine* max_forwards = nullptr;
  std::string_view twice;
  bool expects_other = false;
  bool connection = false;

  void once(const FieldLine*& place, const FieldLine& line, std::string_view fault) {
    if (place != nullptr) twice = fault;
    place = &line;
  }
};

Found find_known(std::string_view octets, RequestHead& head) {
  Found found;
  for (FieldLine& line : head.fields) {
    switch (line.id) {
      case Field::host:
        found.once(found.host, line, "two Host fields");
        break;
      case Field::content_length:
        found.once(found.length, line, "two Content-Length fields");
        break;
      case Field::transfer_encoding:
        found.once(found.coding, line, "two Transfer-Encoding fields");
        break;
      case Field::max_forwards:
        if (head.method_id != Method::options) break;
        found.once(found.max_forwards, line, "two Max-Forwards fields");
        break;
      case Field::expect:
        found.expects_other |= !same_ignoring_case(value_of(octets, line), "100-continue");
        // An HTTP/1.0 client means nothing by it (RFC 9110 10.1.1) and would never get the 100.
        line.hop_by_hop = head.minor_version == 0;
        break;
      case Field::accept:
        found.accept = &line;
        break;
      case Field::connection:
        found.connection = true;
        break;
      default:
        break;
    }
  }
  return found;
}

Progress read_host(std::string_view octets, const FieldLine* line, RequestHead& head) {
  if (line == nullptr) {
    if (head.minor_version == 0) return Progress::complete;
    return malformed(head, "no Host field");
  }
  const std::string_view host = value_of(octets, *line);
  if (!host.empty() && !is_authority(host)) return malformed(head, "invalid Host field");
  if (!head.absolute_form) head.authority = host;
  return Progress::complete;
}

// RFC 9112 6.3, without any of its allowances.
Progress read_body(std::string_view octets, const Found& found, RequestHead& head) {
  if (found.coding != nullptr) {
    if (head.minor_version == 0) return bad_framing(head, "Transfer-Encoding in HTTP/1.0");
    if (found.length != nullptr) {
      return bad_framing(head, "Content-Length beside Transfer-Encoding");
    }
    switch (transfer_coding(value_of(octets, *found.coding))) {
      case TransferCoding::chunked:
        break;
      case TransferCoding::unsupported:
        return bad_framing(head, "transfer coding not supported", 501);
      case TransferCoding::malformed:
        return bad_framing(head, "malformed Transfer-Encoding");
    }
    head.body = {BodyKind::chunked, 0};
  } else if (found.length != nullptr) {
    const auto length = content_length(value_of(octets, *found.length));
    if (!length) return bad_framing(head, "invalid Content-Length");
    head.body = {BodyKind::length, *length};
  }
  return Progress::complete;
}

Progress read_max_forwards(std::string_view value, RequestHead& head) {
  const auto hops = content_length(value);
  if (!hops) return malformed(head, "invalid Max-Forwards");
  constexpr std::uint64_t kMax = std::numeric_limits<std::int32_t>::max();
  head.max_forwards = static_cast<std::int32_t>(std::min(*hops, kMax));
  return Progress::complete;
}

// What the lines mean together, once all are there.
Progress judge(std::string_view octets, const HeadLimits& limits, RequestHead& head) {
  const Found found = find_known(octets, head);
  if (found.accept != nullptr) head.accepts_json = prefers_json(value_of(octets, *found.accept));
  if (!found.twice.empty()) {
    return found.length != nullptr || found.coding != nullptr ? bad_framing(head, found.twice)
                                                              : malformed(head, found.twice);
  }
  if (read_body(octets, found, head) == Progress::refused) return Progress::refused;
  if (read_host(octets, found.host, head) == Progress::refused) return Progress::refused;
  ConnectionOptions options;
  if (found.connection && !read_connection(octets, head.fields, limits.fields, options)) {
    return refuse(head.refusal, 431, HeadError::header_too_large, "too many Connection options");
  }
  head.keep_alive = keeps_alive(options, head.minor_version);
  if (found.expects_other) {
    return refuse(head.refusal, 417, HeadError::malformed, "unknown expectation");
  }
  if (found.max_forwards != nullptr) {
    return read_max_forwards(value_of(octets, *found.max_forwards), head);
  }
  return Progress::complete;
}

// The scan from the first octet on.
Progress scan_whole(std::string_view octets, const HeadLimits& limits, RequestHead& head) {
  clear(head);
  const char* const begin = octets.data();
  const char* const end = begin + octets.size();
  if (!is(*begin, kToken)) return malformed(head, "malformed method");
  const char* const fields = read_request_line(begin, end, head);
  if (fields == nullptr) {
    return octets.find('\n') == std::string_view::npos ? Progress::incomplete : Progress::refused;
  }
  head.line_end = static_cast<std::uint32_t>(fields - begin);
  if (head.target.size() > limits.target) [[unlikely]] {
    return refuse(head.refusal, 414, HeadError::uri_too_long, "request target too long");
  }
  if (read_target(head) == Progress::refused) return Progress::refused;

  bool too_many = false;
  const LineEnd blank = scan_fields(begin, fields, end, head.fields, limits.fields, too_many);
  if (blank.next == nullptr) {
    return blank.fault.empty() ? Progress::incomplete : malformed(head, blank.fault);
  }
  if (too_many) {
    return refuse(head.refusal, 431, HeadError::header_too_large, "too many fields");
  }
  head.size = static_cast<std::uint32_t>(blank.next - begin);
  return judge(octets, limits, head);
}

}  // namespace

std::size_t leading_blank_lines(std::string_view input) noexcept {
  std::size_t size = 0;
  while (input.substr(size).starts_with("\r\n")) size += 2;
  return size;
}

Progress scan_request(std::string_view input, const HeadLimits& limits, RequestHead& head,
                      std::size_t& scanned) {
  const std::string_view octets = input.substr(0, limits.size);
  if (octets.empty() || octets == "\r") return Progress::incomplete;  // maybe half a blank line
  // At the limit once more from the start: the refusal should know the method.
  if (scanned == 0 || octets.size() == limits.size || worth_scanning(octets, scanned)) {
    const Progress progress = scan_whole(octets, limits, head);
    if (progress != Progress::incomplete) {
      scanned = 0;
      return progress;
    }
    scanned = octets.size();
  }
  if (octets.size() < limits.size) return Progress::incomplete;
  if (octets.find('\n') == std::string_view::npos) {
    return refuse(head.refusal, 414, HeadError::uri_too_long, "request line too long");
  }
  return refuse(head.refusal, 431, HeadError::header_too_large, "head too large");
}

}  // namespace clockwise::http
