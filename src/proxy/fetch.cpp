#include "proxy/fetch.h"

#include <algorithm>
#include <array>

#include "cache/lines.h"
#include "http/octets.h"

namespace clockwise::proxy {
namespace {

using http::same_ignoring_case;

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names,
                             [&](std::string_view one) { return same_ignoring_case(name, one); });
}

// Of the client's own: conditions and ranges, which are answered from what is stored, and what some
// origins take for another request than the one that the key was made of.
constexpr std::array<std::string_view, 14> kNotFetched{"if-none-match",
                                                       "if-modified-since",
                                                       "if-match",
                                                       "if-unmodified-since",
                                                       "if-range",
                                                       "range",
                                                       "x-original-url",
                                                       "x-rewrite-url",
                                                       "x-http-method",
                                                       "x-method-override",
                                                       "x-http-method-override",
                                                       "x-original-host",
                                                       "x-host",
                                                       "x-forwarded-server"};

bool is_fetched(std::string_view octets, const http::FieldLine& line) {
  switch (line.id) {
    case http::Field::host:
    case http::Field::content_length:
    case http::Field::transfer_encoding:
    case http::Field::expect:
    case http::Field::x_forwarded_host:
      return false;
    default:
      return !line.hop_by_hop && !is_one_of(http::name_of(octets, line), kNotFetched);
  }
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

// Of this connection and of this moment (RFC 9111 3.1).
constexpr std::array<std::string_view, 4> kNotStored{
    "age", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization"};

bool is_kept(std::string_view octets, const http::FieldLine& line,
             const std::vector<std::string>& dropped) {
  if (line.hop_by_hop || line.id == http::Field::content_length ||
      line.id == http::Field::transfer_encoding || line.id == http::Field::trailer)
    return false;
  const std::string_view name = http::name_of(octets, line);
  if (is_one_of(name, kNotStored)) return false;
  return std::ranges::none_of(
      dropped, [&](const std::string& one) { return same_ignoring_case(name, one); });
}

// What a 304 says of these is about a content that it does not bring.
constexpr std::array<std::string_view, 3> kOfContent{"content-encoding", "content-type",
                                                     "content-range"};

}  // namespace

std::string fetch_request(std::string_view octets, const http::RequestHead& head,
                          const cache::Object* validates) {
  std::string out;
  out.reserve(head.size + 128);
  out.append("GET ").append(head.uri);
  out.append(head.authority.empty() && head.minor_version == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  if (!head.authority.empty() || head.minor_version > 0) append_line(out, "Host", head.authority);
  for (const http::FieldLine& line : head.fields)
    if (is_fetched(octets, line)) out.append(octets.substr(line.begin, line.end - line.begin));
  if (validates != nullptr) out.append(conditions_of(*validates));
  out.append("\r\n");
  return out;
}

std::string conditions_of(const cache::Object& validated) {
  std::string out;
  if (const auto etag = validated.field("etag"); !etag.empty())
    append_line(out, "If-None-Match", etag);
  if (const auto changed = validated.field("last-modified"); !changed.empty())
    append_line(out, "If-Modified-Since", changed);
  return out;
}

std::string stored_head(std::string_view octets, const http::ResponseHead& head,
                        const std::vector<std::string>& dropped, std::string_view date) {
  std::string out;
  out.reserve(head.size + 48);
  bool has_date = false;
  for (const http::FieldLine& line : head.fields) {
    if (!is_kept(octets, line, dropped)) continue;
    has_date |= line.id == http::Field::date;
    append_line(out, http::name_of(octets, line), http::value_of(octets, line));
  }
  if (!has_date) append_line(out, "Date", date);
  return out;
}

std::string lines_for_reader(std::string_view octets, const http::ResponseHead& head,
                             const std::vector<std::string>& dropped) {
  std::string out;
  for (const http::FieldLine& line : head.fields) {
    const std::string_view name = http::name_of(octets, line);
    const bool only_dropped = is_kept(octets, line, {}) && !is_kept(octets, line, dropped) &&
                              !same_ignoring_case(name, kSurrogateControl);
    if (only_dropped || (!line.hop_by_hop && same_ignoring_case(name, "age")))
      append_line(out, name, http::value_of(octets, line));
  }
  return out;
}

std::string confirmed_head(const cache::Object& stored, std::string_view octets,
                           const http::ResponseHead& head,
                           const std::vector<std::string>& dropped) {
  const auto updates = [&](const http::FieldLine& line) {
    return is_kept(octets, line, dropped) && !is_one_of(http::name_of(octets, line), kOfContent);
  };
  std::string out;
  cache::each_line(stored.head(), [&](std::string_view line) {
    const std::string_view name = line.substr(0, line.find(':'));
    const bool replaced = std::ranges::any_of(head.fields, [&](const http::FieldLine& newer) {
      return same_ignoring_case(http::name_of(octets, newer), name) && updates(newer);
    });
    if (!replaced) out += line;
    return true;
  });
  for (const http::FieldLine& line : head.fields)
    if (updates(line)) append_line(out, http::name_of(octets, line), http::value_of(octets, line));
  return out;
}

}  // namespace clockwise::proxy
