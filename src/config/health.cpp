#include "config/health.h"

#include <fmt/format.h>

#include <algorithm>

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Choice<std::string>, 2> kMethods() {
  return {{{"GET", "GET"}, {"HEAD", "HEAD"}}};
}

// `200` or `200-399`.
std::optional<StatusRange> status_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash), 100, 599);
  const auto last =
      dash == std::string_view::npos ? first : parse_integer(text.substr(dash + 1), 100, 599);
  if (!first || !last || *first > *last) return std::nullopt;
  return StatusRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

void read_status(const Field& field, std::vector<StatusRange>& out) {
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return;
  if (items->empty()) return field.problem("names no status; at least one is needed");
  out.clear();
  for (const Field& item : *items) {
    const std::optional<Scalar> scalar = item.scalar();
    if (!scalar) continue;
    if (const auto range = status_range(scalar->text))
      out.push_back(*range);
    else
      item.error("is not a status such as 200 or a range such as 200-399");
  }
}

// What goes into a request line must not end it.
void read_path(const Field& field, std::string& out) {
  std::string path;
  read_text(field, path, Empty::refused);
  if (path.empty()) return;
  const bool plain = std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7f; });
  if (!path.starts_with('/') || !plain)
    field.error("is not a path: it starts with / and holds neither blanks nor control characters");
  else
    out = path;
}

void read_host(const Field& field, std::string& out) {
  std::string host;
  read_text(field, host, Empty::allowed);
  const bool plain = std::ranges::all_of(
      host, [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != '@' && c != ','; });
  if (!plain)
    field.error("is not a host such as www.example.com");
  else
    out = host;
}

// What is asked for, and which answers are good.
void read_request(MapReader& map, Health& read) {
  map.read("path", [&](const Field& f) { read_path(f, read.path); });
  map.read("method", choice(read.method, kMethods()));
  map.read("host", [&](const Field& f) { read_host(f, read.host); });
  map.read("status", [&](const Field& f) { read_status(f, read.status); });
  map.read("body", text(read.body, Empty::allowed));
}

}  // namespace

void read_health(const Field& field, Protocol protocol, std::optional<Health>& health) {
  if (is_off(field)) return health.reset();
  Health read;
  std::optional<Field> timeout;
  MapReader map(field);
  if (protocol == Protocol::http) {
    read_request(map, read);
  } else {
    for (const std::string_view key : {"path", "method", "host", "status", "body"})
      map.refuse(key, "is not for memcached servers: they are asked for their version");
  }
  map.read("port", integer(read.port, 0, 65'535));
  map.read("interval", duration(read.interval, 10ms));
  map.read("jitter", share(read.jitter));
  map.read("timeout", [&](const Field& f) {
    duration(read.timeout, 1ms)(f);
    timeout = f;
  });
  map.read("rise", integer(read.rise, 1, 1'000));
  map.read("fall", integer(read.fall, 1, 1'000));
  map.finish();
  // A check must have ended before the next one begins.
  if (timeout && read.timeout > read.interval)
    timeout->error("is longer than health.interval: a check would still run when the next begins");
  else
    read.timeout = std::min(read.timeout, read.interval);
  if (read.method == "HEAD" && !read.body.empty())
    field.problem("asks for a body with method HEAD, whose answers have none");
  health = std::move(read);
}

void read_outlier(const Field& field, std::optional<Outlier>& outlier) {
  if (is_off(field)) return outlier.reset();
  Outlier read;
  MapReader map(field);
  map.read("consecutive_failures", integer(read.consecutive_failures, 0, 100'000));
  map.read("success_gap", share(read.success_gap));
  map.read("min_requests", integer(read.min_requests, 1, 10'000'000));
  map.read("interval", duration(read.interval, 100ms));
  map.read("eject", duration(read.eject, 1ms));
  map.read("max_eject", duration(read.max_eject, 1ms));
  map.read("max_ejected", share(read.max_ejected));
  map.finish();
  read.max_eject = std::max(read.max_eject, read.eject);
  outlier = read;
}

}  // namespace clockwise::config
