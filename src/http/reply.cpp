#include "http/reply.h"

#include <array>
#include <charconv>

namespace clockwise::http {
namespace {

// What a client may use instead, which RFC 9110 15.5.6 wants said.
constexpr std::string_view kAllow = "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n";

void append_number(std::uint64_t number, std::string& out) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// The text of a JSON string. What stands here is ours, but a slip must not break the document.
void append_quoted(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char octet : text) {
    const auto value = static_cast<unsigned char>(octet);
    if (value < 0x20) {
      out.append("\\u00").append(1, kHex[value >> 4]).append(1, kHex[value & 15]);
      continue;
    }
    if (octet == '"' || octet == '\\') out += '\\';
    out += octet;
  }
  out += '"';
}

std::string body_of(const Reply& reply) {
  const std::string_view reason = reason_phrase(reply.status);
  std::string body;
  if (reply.json) {
    body = R"({"error": {"code": )";
    append_quoted(reply.proxy_error.empty() ? "http_request_error" : reply.proxy_error, body);
    body += R"(, "message": )";
    append_quoted(reply.text.empty() ? reason : reply.text, body);
    return body + "}}\n";
  }
  append_number(reply.status, body);
  body.append(" ").append(reason);
  if (!reply.text.empty()) body.append(": ").append(reply.text);
  return body + "\n";
}

void append_connection(const Reply& reply, std::string& out) {
  if (reply.close) {
    out += "Connection: close\r\n";
  } else if (reply.client_minor_version == 0) {
    out += "Connection: keep-alive\r\n";
  }
}

// RFC 9110 15.3.5: no content, and nothing that would describe any.
void end_without_content(const Reply& reply, std::string& out) {
  out.append("Via: 1.1 clockwise\r\n").append(reply.extra);
  append_connection(reply, out);
  out += "\r\n";
}

}  // namespace

void render(const Reply& reply, std::string& out) {
  const std::string body = body_of(reply);
  out = "HTTP/1.1 ";
  append_number(reply.status, out);
  out.append(" ").append(reason_phrase(reply.status)).append("\r\n");
  if (!reply.date.empty()) out.append("Date: ").append(reply.date).append("\r\n");
  if (reply.status == 204) return end_without_content(reply, out);
  out += reply.json ? "Content-Type: application/json\r\n"
                    : "Content-Type: text/plain; charset=utf-8\r\n";
  out += "Content-Length: ";
  append_number(body.size(), out);
  out += "\r\nCache-Control: no-store\r\nVia: 1.1 clockwise\r\n";
  if (reply.status == 405) {
    if (reply.allow.empty())
      out += kAllow;
    else
      out.append("Allow: ").append(reply.allow).append("\r\n");
  }
  if (!reply.proxy_error.empty()) {
    out.append("Proxy-Status: clockwise; error=").append(reply.proxy_error).append("\r\n");
  }
  if (reply.retry_after > 0) {
    out += "Retry-After: ";
    append_number(reply.retry_after, out);
    out += "\r\n";
  }
  out += reply.extra;
  append_connection(reply, out);
  out += "\r\n";
  if (!reply.head) out += body;
}

std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 451:
      return "Unavailable For Legal Reasons";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    case 508:
      return "Loop Detected";
    default:
      return "Error";
  }
}

}  // namespace clockwise::http
