#include "proxy/access_line.h"

#include <fmt/format.h>

#include <iterator>

namespace clockwise::proxy {
namespace {

using std::chrono::duration_cast;

// The log is written on the event loop: a field of a hostile request may not cost more than this.
constexpr std::size_t kMaxField = 8 * 1024;

void append_octet(unsigned char c, std::string_view prefix, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += prefix;
  out += kDigits[c >> 4U];
  out += kDigits[c & 15U];
}

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629), or 0.
std::size_t utf8_sequence(std::string_view text) {
  const auto octet = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = octet(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((octet(i) & 0xC0U) != 0x80) return 0;
  if (length < 3) return length;
  const unsigned char second = octet(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

// A well-formed sequence that a terminal or a viewer would act on instead of showing it: C1
// controls, line separators, marks that turn the direction of text. Its code point, or 0.
std::uint32_t acts_on_viewers(std::string_view sequence) {
  const auto octet = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  std::uint32_t code = 0;
  if (sequence.size() == 2) code = (octet(0) & 0x1FU) << 6U | (octet(1) & 0x3FU);
  if (sequence.size() == 3)
    code = (octet(0) & 0x0FU) << 12U | (octet(1) & 0x3FU) << 6U | (octet(2) & 0x3FU);
  const bool acts = (code >= 0x80 && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
                    (code >= 0x2066 && code <= 0x2069);
  return acts ? code : 0;
}

void append_json_text(std::string_view text, std::string& out) {
  text = text.substr(0, kMaxField);
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_sequence(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c < 0x20 || c == 0x7F) {
      append_octet(c, "\\u00", out);
    } else if (length == 0) {
      append_octet(c, "\\\\x", out);
    } else if (const std::uint32_t code = acts_on_viewers(text.substr(0, length)); code != 0) {
      append_octet(static_cast<unsigned char>(code >> 8U), "\\u", out);
      append_octet(static_cast<unsigned char>(code & 0xFFU), "", out);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void append_combined_text(std::string_view text, std::string& out) {
  if (text.empty()) out += '-';
  for (const char octet : text.substr(0, kMaxField)) {
    const auto c = static_cast<unsigned char>(octet);
    if (c < 0x20 || c > 0x7E || c == '"' || c == '\\')
      append_octet(c, "\\x", out);
    else
      out += octet;
  }
}

void json_field(std::string_view name, std::string_view text, std::string& out) {
  out += ",\"";
  out += name;
  out += "\":\"";
  append_json_text(text, out);
  out += '"';
}

void json_field(std::string_view name, std::uint64_t number, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":{}", name, number);
}

}  // namespace

void LineFormat::append(const AccessRecord& record, std::string& out) {
  refresh_second(record.time);
  if (format_ == config::LogFormat::json)
    append_json(record, out);
  else
    append_combined(record, out);
}

void LineFormat::refresh_second(std::chrono::system_clock::time_point time) {
  const std::time_t second = std::chrono::system_clock::to_time_t(time);
  if (second == second_) return;
  second_ = second;
  std::tm utc{};
  gmtime_r(&second, &utc);
  const char* pattern =
      format_ == config::LogFormat::json ? "%Y-%m-%dT%H:%M:%S" : "%d/%b/%Y:%H:%M:%S +0000";
  char text[64];
  second_text_.assign(text, std::strftime(text, sizeof text, pattern, &utc));
}

void LineFormat::append_json(const AccessRecord& record, std::string& out) {
  const auto since_epoch = record.time.time_since_epoch();
  const auto millis = duration_cast<std::chrono::milliseconds>(since_epoch).count() % 1000;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"time":"{}.{:03}Z")", second_text_, millis);
  json_field("client", record.client_ip, out);
  json_field("method", record.method, out);
  json_field("target", record.target, out);
  json_field("host", record.host, out);
  fmt::format_to(to, R"(,"protocol":"HTTP/1.{}")", record.minor_version);
  json_field("status", record.status, out);
  json_field("request_bytes", record.request_bytes, out);
  json_field("response_bytes", record.response_bytes, out);
  const auto micros = duration_cast<std::chrono::microseconds>(record.duration).count();
  fmt::format_to(to, R"(,"duration_seconds":{}.{:06})", micros / 1'000'000, micros % 1'000'000);
  json_field("listener", record.listener, out);
  json_field("pool", record.pool, out);
  json_field("server", record.server, out);
  json_field("attempts", record.attempts, out);
  json_field("reason", record.reason, out);
  json_field("request_id", record.request_id, out);
  json_field("referer", record.referer, out);
  json_field("user_agent", record.user_agent, out);
  out += "}\n";
}

void LineFormat::append_combined(const AccessRecord& record, std::string& out) {
  append_combined_text(record.client_ip, out);
  fmt::format_to(std::back_inserter(out), " - - [{}] \"", second_text_);
  append_combined_text(record.method, out);
  out += ' ';
  append_combined_text(record.target, out);
  // 499: what nginx writes for a client that left before the answer.
  fmt::format_to(std::back_inserter(out), " HTTP/1.{}\" {} {} \"", record.minor_version,
                 record.status == 0 ? 499 : record.status, record.response_bytes);
  append_combined_text(record.referer, out);
  out += "\" \"";
  append_combined_text(record.user_agent, out);
  out += "\"\n";
}

}  // namespace clockwise::proxy
