#include "proxy/item.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>

#include "cache/directives.h"
#include "cache/lines.h"
#include "http/octets.h"
#include "memcached/key.h"

namespace clockwise::proxy {
namespace {

using cache::lines_of;
using http::same_ignoring_case;

// The fields of content that are kept with it; all others are of one message.
constexpr std::array<std::string_view, 7> kKept{
    "content-type",  "content-encoding", "content-language", "content-disposition",
    "cache-control", "last-modified",    "expires"};

// What an extension is most often; the configuration goes before.
struct Type {
  std::string_view extension, type;
};
constexpr std::array<Type, 24> kTypes{
    {{"avif", "image/avif"},       {"css", "text/css"},          {"csv", "text/csv"},
     {"gif", "image/gif"},         {"htm", "text/html"},         {"html", "text/html"},
     {"ico", "image/x-icon"},      {"jpeg", "image/jpeg"},       {"jpg", "image/jpeg"},
     {"js", "text/javascript"},    {"json", "application/json"}, {"md", "text/markdown"},
     {"mjs", "text/javascript"},   {"mp4", "video/mp4"},         {"pdf", "application/pdf"},
     {"png", "image/png"},         {"svg", "image/svg+xml"},     {"txt", "text/plain"},
     {"wasm", "application/wasm"}, {"webm", "video/webm"},       {"webp", "image/webp"},
     {"woff", "font/woff"},        {"woff2", "font/woff2"},      {"xml", "text/xml"}}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls `f` with each member of a list without quoted strings.
template <class F>
void each_member(std::span<const std::string_view> lines, F f) {
  for (std::string_view line : lines) {
    while (!line.empty()) {
      const std::size_t comma = std::min(line.find(','), line.size());
      if (const auto member = trimmed(line.substr(0, comma)); !member.empty()) f(member);
      line.remove_prefix(std::min(comma + 1, line.size()));
    }
  }
}

bool is_gzip(std::string_view coding) {
  return same_ignoring_case(coding, "gzip") || same_ignoring_case(coding, "x-gzip");
}

// `;q=0`, `;q=0.0` …
bool is_refused(std::string_view parameters) {
  const std::size_t q = parameters.find("q=");
  if (q == std::string_view::npos) return false;
  const std::string_view value = trimmed(parameters.substr(q + 2));
  return !value.empty() && value.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

ItemKey item_key(std::string_view rendered, const config::Memcached& settings, std::string& key) {
  key.clear();
  memcached::append_escaped(rendered, key);
  if (key.empty()) key = "/";
  ItemKey made;
  made.digested = memcached::digest_if_long(key);
  made.refused = made.digested && settings.long_key == config::Memcached::LongKey::reject;
  return made;
}

std::string_view content_type(std::string_view uri, const config::Memcached& settings) noexcept {
  const std::string_view path = uri.substr(0, uri.find('?'));
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return settings.default_type;
  const std::string_view extension = name.substr(dot + 1);
  const auto same = [&](std::string_view one) { return same_ignoring_case(extension, one); };
  for (const auto& [one, type] : settings.types)
    if (same(one)) return type;
  const auto known = std::ranges::find_if(kTypes, same, &Type::extension);
  return known == kTypes.end() ? std::string_view(settings.default_type) : known->type;
}

std::string etag_of(std::uint64_t unique) {
  std::string tag;
  tag += '"';
  tag += std::to_string(unique);
  tag += '"';
  return tag;
}

std::optional<std::vector<std::uint64_t>> uniques_of(std::span<const std::string_view> if_match) {
  std::vector<std::uint64_t> uniques;
  bool any = false;
  each_member(if_match, [&](std::string_view tag) {
    any = any || tag == "*";
    if (tag.size() < 3 || tag.front() != '"' || tag.back() != '"') return;
    tag = tag.substr(1, tag.size() - 2);
    std::uint64_t unique = 0;
    const auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), unique);
    // As it was given: another spelling of the number is another tag.
    if (error == std::errc() && std::to_string(unique) == tag) uniques.push_back(unique);
  });
  if (any) return std::nullopt;
  return uniques;
}

bool accepts_gzip(std::string_view octets, std::span<const http::FieldLine> fields) {
  std::optional<bool> gzip, any;
  each_member(lines_of(octets, fields, "accept-encoding"), [&](std::string_view member) {
    const std::size_t end = std::min(member.find(';'), member.size());
    const std::string_view coding = trimmed(member.substr(0, end));
    const bool taken = !is_refused(member.substr(end));
    if (is_gzip(coding)) gzip = taken;
    if (coding == "*") any = taken;
  });
  return gzip.value_or(any.value_or(false));
}

bool unpack(std::string_view packed, std::size_t most, std::string& out) {
  out.clear();
  z_stream stream{};
  constexpr int kGzipOnly = 15 + 16;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int result = Z_OK;
  while (result == Z_OK && out.size() < most) {
    const std::size_t before = out.size();
    out.resize(std::min(most, std::max<std::size_t>(16 * 1024, before * 2)));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    // Members may follow one another (RFC 1952 2.2).
    if (result == Z_STREAM_END && stream.avail_in > 0) result = inflateReset(&stream);
    if (result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) break;  // it is cut short
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END;
}

std::optional<ItemAnswer> read_stored_answer(std::string_view value) {
  constexpr http::HeadLimits kLimits{.size = 64 * 1024, .fields = 1000};
  http::ResponseHead head;
  std::size_t scanned = 0;
  if (value.empty() || http::scan_response(value, kLimits, http::Method::head, head, scanned) !=
                           http::Progress::complete)
    return std::nullopt;
  if (head.status < 200) return std::nullopt;
  ItemAnswer answer{.status = head.status, .lines = {}, .body = value.substr(head.size)};
  for (const http::FieldLine& line : head.fields) {
    const std::string_view name = http::name_of(value, line);
    const bool framing = same_ignoring_case(name, "content-length") ||
                         same_ignoring_case(name, "transfer-encoding") ||
                         same_ignoring_case(name, "connection") ||
                         same_ignoring_case(name, "keep-alive") ||
                         same_ignoring_case(name, "trailer") || same_ignoring_case(name, "date") ||
                         same_ignoring_case(name, "age") || same_ignoring_case(name, "via");
    if (framing) continue;
    answer.lines.append(name).append(": ").append(http::value_of(value, line)).append("\r\n");
  }
  return answer;
}

std::string stored_answer_head(std::string_view octets, std::span<const http::FieldLine> fields) {
  std::string head = "HTTP/1.1 200 OK\r\n";
  for (const http::FieldLine& line : fields) {
    const std::string_view name = http::name_of(octets, line);
    const bool kept = std::ranges::any_of(
        kKept, [&](std::string_view one) { return same_ignoring_case(name, one); });
    if (kept) head.append(name).append(": ").append(http::value_of(octets, line)).append("\r\n");
  }
  return head += "\r\n";
}

std::int64_t put_lifetime(std::string_view octets, std::span<const http::FieldLine> fields,
                          const config::Memcached& settings) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return std::chrono::ceil<std::chrono::seconds>(time).count();
  };
  const cache::Directives control =
      cache::parse_cache_control(lines_of(octets, fields, "cache-control"));
  std::int64_t lifetime = control.max_age ? *control.max_age : seconds(settings.ttl);
  const std::int64_t most = seconds(settings.max_ttl);
  if (most > 0 && (lifetime == 0 || lifetime > most) && !(control.max_age && lifetime == 0))
    lifetime = most;
  // What is stale at once is not kept for ever.
  return control.max_age && lifetime == 0 ? -1 : lifetime;
}

std::optional<std::uint32_t> put_flags(std::string_view octets,
                                       std::span<const http::FieldLine> fields,
                                       const config::Memcached& settings) {
  std::uint32_t flags = 0;
  bool fits = true;
  if (settings.layout == config::Memcached::Layout::http) return flags;
  each_member(lines_of(octets, fields, "content-encoding"), [&](std::string_view coding) {
    if (same_ignoring_case(coding, "identity")) return;
    fits = fits && is_gzip(coding) && flags == 0 && settings.gzip_flag != 0;
    flags = settings.gzip_flag;
  });
  if (!fits) return std::nullopt;
  return flags;
}

}  // namespace clockwise::proxy
