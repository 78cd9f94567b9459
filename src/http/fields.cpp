#include "http/fields.h"

#include <cstdint>
#include <cstring>

#include "http/octets.h"

namespace clockwise::http {
namespace {

template <std::size_t N>
Field when(const char* name, const char (&wanted)[N], Field field) noexcept {
  return is_name(name, wanted) ? field : Field::other;
}

constexpr bool is_hop_by_hop(Field id) noexcept {
  return (id >= Field::connection && id <= Field::http2_settings) || id == Field::transfer_encoding;
}

[[gnu::always_inline]] inline Field field_of(std::string_view text) noexcept {
  const char* const name = text.data();
  switch (text.size()) {
    case 2:
      return when(name, "te", Field::te);
    case 3:
      return when(name, "via", Field::via);
    case 4:
      if (is_name(name, "host")) return Field::host;
      return when(name, "date", Field::date);
    case 6:
      if (is_name(name, "accept")) return Field::accept;
      return when(name, "expect", Field::expect);
    case 7:
      if (is_name(name, "trailer")) return Field::trailer;
      return when(name, "upgrade", Field::upgrade);
    case 9:
      return when(name, "forwarded", Field::forwarded);
    case 10:
      if (is_name(name, "connection")) return Field::connection;
      return when(name, "keep-alive", Field::keep_alive);
    case 12:
      if (is_name(name, "x-request-id")) return Field::x_request_id;
      return when(name, "max-forwards", Field::max_forwards);
    case 14:
      if (is_name(name, "content-length")) return Field::content_length;
      if (is_name(name, "http2-settings")) return Field::http2_settings;
      break;
    case 15:
      if (is_name(name, "x-forwarded-for")) return Field::x_forwarded_for;
      break;
    case 16:
      if (is_name(name, "proxy-connection")) return Field::proxy_connection;
      if (is_name(name, "x-forwarded-host")) return Field::x_forwarded_host;
      break;
    case 17:
      if (is_name(name, "transfer-encoding")) return Field::transfer_encoding;
      if (is_name(name, "x-forwarded-proto")) return Field::x_forwarded_proto;
      break;
    default:
      break;
  }
  if (text.size() > 12) return when(name, "x-forwarded-", Field::x_forwarded_other);
  return Field::other;
}

// Naming any other in Connection does not remove it: the message would change its meaning, or the
// sender could strip what the proxy itself adds.
bool may_be_named_away(std::string_view head, const FieldLine& line) noexcept {
  switch (line.id) {
    case Field::other:
      return !same_ignoring_case(name_of(head, line), "cache-control");
    case Field::accept:
    case Field::expect:
    case Field::max_forwards:
      return true;
    default:
      return false;
  }
}

std::string_view name_fault(const char* p, const char* q, const char* end) noexcept {
  if (p != end && *p == '\n') return "bare LF";
  if (p != end && is(*p, kBlank)) return "folded line or blank before a field name";
  if (q != end && is(*q, kBlank)) return "blank before the colon";
  if (q == p && q != end && *q == ':') return "empty field name";
  return "field line without a valid name and colon";
}

// One field line with its CRLF.
[[gnu::always_inline]] inline LineEnd scan_line(const char* head, const char* p, const char* end,
                                                FieldLine& line) noexcept {
  const char* const name_end = skip_token(p, end);
  const std::ptrdiff_t name_size = name_end - p;
  if (name_end == end || *name_end != ':' || name_size == 0) [[unlikely]] {
    return {nullptr, name_fault(p, name_end, end)};
  }
  if (name_size > UINT16_MAX) [[unlikely]]
    return {nullptr, "field name too long"};
  const char* const value = skip(name_end + 1, end, kBlank);
  const char* const cr = skip_text(head, value, end);
  if (end - cr < 2 || cr[0] != '\r' || cr[1] != '\n') [[unlikely]] {
    return {nullptr, "control octet or bare line end in a field value"};
  }
  const char* value_end = cr;
  while (value_end != value && is(value_end[-1], kBlank)) --value_end;

  line.begin = static_cast<std::uint32_t>(p - head);
  line.end = static_cast<std::uint32_t>(cr + 2 - head);
  line.value = static_cast<std::uint32_t>(value - head);
  line.value_size = static_cast<std::uint32_t>(value_end - value);
  line.name_size = static_cast<std::uint16_t>(name_size);
  line.id = field_of({p, static_cast<std::size_t>(name_size)});
  line.hop_by_hop = is_hop_by_hop(line.id);
  return {cr + 2, {}};
}

bool has_line_feed(const char* p, const char* end) noexcept {
  return p != end && std::memchr(p, '\n', static_cast<std::size_t>(end - p)) != nullptr;
}

}  // namespace

LineEnd scan_fields(const char* head, const char* p, const char* end,
                    std::vector<FieldLine>& fields, std::size_t max_fields, bool& too_many) {
  too_many = false;
  while (end - p >= 2) {
    if (p[0] == '\r' && p[1] == '\n') return {p + 2, {}};
    FieldLine line;
    const LineEnd read = scan_line(head, p, end, line);
    if (read.next == nullptr) {
      return {nullptr, has_line_feed(p, end) ? read.fault : std::string_view{}};
    }
    if (fields.size() < max_fields) {
      fields.push_back(line);
    } else {
      too_many = true;
    }
    p = read.next;
  }
  if (p != end && *p == '\n') return {nullptr, name_fault(p, p, end)};
  return {};
}

bool worth_scanning(std::string_view octets, std::size_t& scanned) noexcept {
  const char* const head = octets.data();
  while (true) {
    const std::size_t feed = octets.find('\n', scanned);
    if (feed == std::string_view::npos) break;
    const std::size_t before = feed == 0 ? std::string_view::npos : octets.rfind('\n', feed - 1);
    if (before == std::string_view::npos) return true;  // the first line
    FieldLine line;
    const std::size_t begin = before + 1;
    // A blank line does not read as a field line either.
    if (scan_line(head, head + begin, head + feed + 1, line).next == nullptr) return true;
    scanned = feed + 1;
  }
  scanned = octets.size();
  return false;
}

bool read_connection(std::string_view head, std::vector<FieldLine>& fields, std::size_t max_options,
                     ConnectionOptions& options) noexcept {
  const auto name_away = [&](std::string_view name) {
    for (FieldLine& line : fields) {
      if (line.name_size == name.size() && same_ignoring_case(name_of(head, line), name) &&
          may_be_named_away(head, line)) {
        line.hop_by_hop = true;
      }
    }
  };
  const auto read_keep_or_close = [&](std::string_view option) {
    const bool close = option.size() == 5 && is_name(option.data(), "close");
    const bool keep_alive = option.size() == 10 && is_name(option.data(), "keep-alive");
    options.close |= close;
    options.keep_alive |= keep_alive;
    return close || keep_alive;
  };
  std::size_t count = 0;
  const auto read_option = [&](std::string_view option) {
    if (option.empty()) return true;
    if (!read_keep_or_close(option)) name_away(option);
    return ++count <= max_options;
  };
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].id != Field::connection) continue;
    const std::string_view list = value_of(head, fields[i]);
    if (read_keep_or_close(list)) continue;  // nearly always the whole value
    if (!each_member(list, read_option)) return false;
  }
  return true;
}

}  // namespace clockwise::http
