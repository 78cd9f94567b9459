#include "cache/serve.h"

#include <array>

#include "cache/conditions.h"
#include "cache/fill.h"
#include "cache/lines.h"
#include "http/date.h"
#include "http/octets.h"

namespace clockwise::cache {
namespace {

constexpr std::array<std::string_view, 5> kOfContent{
    "content-type", "content-encoding", "content-language", "content-range", "content-md5"};

bool describes_content(std::string_view line) noexcept {
  const std::string_view name = line.substr(0, line.find(':'));
  for (const std::string_view one : kOfContent)
    if (http::same_ignoring_case(name, one)) return true;
  return false;
}

Validators validators_of(const Object& object, std::int64_t now) {
  Validators out;
  out.etag = object.field("etag");
  if (const auto text = object.field("last-modified"); !text.empty())
    out.last_modified = http::parse_date(text, now);
  if (const auto text = object.field("date"); !text.empty()) out.date = http::parse_date(text, now);
  out.received = now;
  return out;
}

}  // namespace

Served serve(const Object& object, http::Method method, const Wish& wish, std::string_view octets,
             std::span<const http::FieldLine> fields, std::uint64_t length, std::int64_t now) {
  Served served{.status = object.status(), .parts = {}};
  const bool conditional = wish.if_none_match || wish.if_modified_since;
  if (served.status != 200 || (!conditional && !wish.range)) return served;

  const Validators stored = validators_of(object, now);
  const auto lines = [&](std::string_view name) { return lines_of(octets, fields, name); };
  if (conditional &&
      not_modified(lines("if-none-match"), lines("if-modified-since"), stored, now)) {
    served.status = 304;
    return served;
  }
  const Lines range = lines("range");
  if (method != http::Method::get || range.size() != 1 || length == Fill::kUnknown) return served;
  if (!range_applies(lines("if-range"), stored, now)) return served;
  const RangeAnswer answer = ranges_of(range.front(), length);
  if (std::holds_alternative<Unsatisfiable>(answer)) served.status = 416;
  if (const auto* parts = std::get_if<std::vector<ByteRange>>(&answer)) {
    served.status = 206;
    served.parts = *parts;
  }
  return served;
}

void append_head(std::string_view head, bool with_content, std::string& out) {
  each_line(head, [&](std::string_view line) {
    if (with_content || !describes_content(line)) out += line;
    return true;
  });
}

}  // namespace clockwise::cache
