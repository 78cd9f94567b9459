#include "cli/key_log.h"

#include <algorithm>
#include <span>

#include "cli/json_line.h"
#include "config/values.h"

namespace clockwise::cli {
namespace {

using http::KeyParts;

// "http://host/x" -> "/x", its host and scheme told where the log tells no other.
void set_target(std::string_view target, KeyParts& parts) {
  parts.uri = target;
  const std::size_t colon = target.find("://");
  if (target.starts_with('/') || colon == std::string_view::npos) return;
  const std::string_view scheme = target.substr(0, colon);
  const std::string_view rest = target.substr(colon + 3);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  if (parts.scheme.empty()) parts.scheme = scheme;
  if (parts.host.empty()) parts.host = rest.substr(0, end);
  parts.uri = end == rest.size() ? "/" : rest.substr(end);
}

// "GET /x HTTP/1.1"; also without the version, as HTTP/0.9 had it.
bool set_request_line(std::string_view line, KeyParts& parts) {
  const std::size_t method_end = line.find(' ');
  if (method_end == std::string_view::npos || method_end == 0) return false;
  std::string_view target = line.substr(method_end + 1);
  if (const std::size_t version = target.rfind(" HTTP/"); version != std::string_view::npos)
    target = target.substr(0, version);
  if (target.empty()) return false;
  if (parts.method.empty()) parts.method = line.substr(0, method_end);
  set_target(target, parts);
  return true;
}

// The text between the quotes that follow the time: … [date] "GET /x HTTP/1.1" 200 …
std::optional<std::string_view> quoted_request(std::string_view line) {
  const std::size_t before = line.find("] \"");
  if (before == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(before + 3);
  for (std::size_t at = 0; at < rest.size(); ++at) {
    if (rest[at] == '"') return rest.substr(0, at);
    if (rest[at] == '\\') ++at;
  }
  return std::nullopt;
}

bool is_address(std::string_view text) {
  return text.find('/') == std::string_view::npos && config::parse_network(text).has_value();
}

// The port behind the last colon; empty when no digits stand there.
std::string_view port_of(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view port = text.substr(colon + 1);
  return port.find_first_not_of("0123456789") == std::string_view::npos ? port : std::string_view();
}

// Who asked whom, from the words before the time. The second one is "-" in nearly every log.
void set_peers(std::string_view line, KeyParts& parts) {
  const std::string_view first = line.substr(0, line.find(' '));
  const std::string_view rest = line.substr(std::min(first.size() + 1, line.size()));
  const std::string_view second = rest.substr(0, rest.find(' '));
  parts.client_ip = first;
  if (second == "-" || second.starts_with('[') || is_address(first)) return;
  const std::string_view port = port_of(first);
  if (port.empty() && !is_address(second)) return;
  parts.client_ip = second;
  if (parts.host.empty()) parts.host = first;
  if (parts.scheme.empty() && port == "443") parts.scheme = "https";
  if (parts.scheme.empty() && port == "80") parts.scheme = "http";
}

// What a field of a log means, in the order of preference.
struct FieldName {
  std::string_view name;
  enum class Part { target, request_line, path, query, host, scheme, method, client } part;
};

using Part = FieldName::Part;

constexpr FieldName kFields[] = {
    {"request_uri", Part::target},
    {"target", Part::target},
    {"request", Part::request_line},
    {"uri", Part::path},
    {"url", Part::path},
    {"path", Part::path},
    {"RequestPath", Part::path},
    {"args", Part::query},
    {"query", Part::query},
    {"query_string", Part::query},
    {"host", Part::host},
    {"http_host", Part::host},
    {"authority", Part::host},
    {"RequestHost", Part::host},
    {"server_name", Part::host},
    {"scheme", Part::scheme},
    {"RequestScheme", Part::scheme},
    {"method", Part::method},
    {"request_method", Part::method},
    {"RequestMethod", Part::method},
    {"client", Part::client},
    {"remote_addr", Part::client},
    {"client_ip", Part::client},
    {"remote_ip", Part::client},
    {"ClientHost", Part::client},
};

constexpr std::size_t kParts = 8;

// The best field that was found for each part, as it is written.
struct Found {
  std::array<std::string_view, kParts> text;
  std::array<std::size_t, kParts> rank;

  Found() { rank.fill(std::size(kFields)); }

  void take(const JsonLine::Member& member) {
    for (std::size_t i = 0; i < std::size(kFields); ++i) {
      if (kFields[i].name != member.name) continue;
      const auto part = static_cast<std::size_t>(kFields[i].part);
      if (i < rank[part] && !member.value.empty()) {
        rank[part] = i;
        text[part] = member.value;
      }
      return;
    }
  }
  std::string_view of(Part part) const { return text[static_cast<std::size_t>(part)]; }
};

bool scan(std::string_view text, Found& found) {
  JsonLine line(text);
  while (const auto member = line.next()) {
    if (member->kind == JsonLine::Member::Kind::string) found.take(*member);
    if (member->kind == JsonLine::Member::Kind::object && member->name == "request")
      if (!scan(member->value, found)) return false;
  }
  return line.complete();
}

}  // namespace

std::string_view to_string(KeyFormat format) noexcept {
  switch (format) {
    case KeyFormat::plain:
      break;
    case KeyFormat::combined:
      return "combined access log";
    case KeyFormat::json:
      return "JSON access log";
  }
  return "list of keys";
}

KeyFormat detect_key_format(std::string_view line) {
  Found found;
  if (line.starts_with('{') && scan(line, found)) return KeyFormat::json;
  // A first request that could not be read ("-") is still a line of a log.
  return quoted_request(line) ? KeyFormat::combined : KeyFormat::plain;
}

KeyFormat detect_key_format(std::span<const std::string> lines) {
  KeyFormat first = KeyFormat::plain;
  std::ptrdiff_t lead = 0;  // of the first kind of log over the other
  for (const std::string& line : lines) {
    const KeyFormat format = detect_key_format(line);
    if (format == KeyFormat::plain) continue;
    if (first == KeyFormat::plain) first = format;
    lead += format == first ? 1 : -1;
  }
  if (lead >= 0) return first;
  return first == KeyFormat::json ? KeyFormat::combined : KeyFormat::json;
}

std::optional<http::KeyParts> LogReader::request(std::string_view line) {
  return format_ == KeyFormat::json ? json(line) : combined(line);
}

std::optional<http::KeyParts> LogReader::combined(std::string_view line) {
  const auto request = quoted_request(line);
  if (!request) return std::nullopt;
  KeyParts parts{};
  if (!set_request_line(unescaped(*request, unescaped_[0]), parts)) return std::nullopt;
  set_peers(line, parts);
  return parts;
}

std::optional<http::KeyParts> LogReader::json(std::string_view line) {
  Found found;
  if (!scan(line, found)) return std::nullopt;
  KeyParts parts{};
  parts.host = unescaped(found.of(Part::host), unescaped_[1]);
  parts.method = found.of(Part::method);
  parts.client_ip = found.of(Part::client);
  parts.scheme = found.of(Part::scheme);
  if (const std::string_view target = found.of(Part::target); !target.empty()) {
    set_target(unescaped(target, unescaped_[0]), parts);
    return parts;
  }
  if (const std::string_view request = found.of(Part::request_line); !request.empty())
    if (set_request_line(unescaped(request, unescaped_[0]), parts)) return parts;
  const std::string_view path = unescaped(found.of(Part::path), unescaped_[2]);
  if (path.empty()) return std::nullopt;
  set_target(path, parts);
  std::string_view query = unescaped(found.of(Part::query), unescaped_[3]);
  if (query.starts_with('?')) query.remove_prefix(1);
  if (query.empty() || query == "-" || parts.uri.find('?') != std::string_view::npos) return parts;
  joined_.assign(parts.uri).append(1, '?').append(query);
  parts.uri = joined_;
  return parts;
}

}  // namespace clockwise::cli
