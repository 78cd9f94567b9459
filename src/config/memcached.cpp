#include "config/memcached.h"

#include <algorithm>

#include "config/keys.h"
#include "http/octets.h"

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Choice<Memcached::LongKey>, 2> kLongKey{
    {{"hash", Memcached::LongKey::hash}, {"reject", Memcached::LongKey::reject}}};
constexpr std::array<Choice<Memcached::Layout>, 2> kLayout{
    {{"raw", Memcached::Layout::raw}, {"http", Memcached::Layout::http}}};
constexpr std::array<Choice<bool>, 2> kOnReadError{{{"miss", false}, {"error", true}}};
constexpr std::array<Choice<bool>, 2> kEtag{{{"off", false}, {"cas", true}}};
constexpr std::array<Choice<Memcached::OnReturn>, 2> kOnReturn{
    {{"keep", Memcached::OnReturn::keep}, {"distrust", Memcached::OnReturn::distrust}}};

// What stands in a field of an answer must not end it.
bool is_field_value(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= ' ' && c < 0x7f) || c == '\t' || static_cast<unsigned char>(c) >= 0x80;
  });
}

void read_type(const Field& field, std::string& out) {
  std::string type;
  read_text(field, type, Empty::refused);
  if (type.empty()) return;
  if (is_field_value(type))
    out = std::move(type);
  else
    field.error("is no Content-Type such as text/html");
}

void read_types(const Field& field, std::map<std::string, std::string>& types) {
  MapReader map(field);
  map.read_each([&](const std::string& extension, const Field& f) {
    std::string lower = extension;
    std::ranges::transform(lower, lower.begin(), http::lower);
    if (extension.empty() || extension.find_first_of("./") != std::string::npos)
      f.problem_at(f.key_place(), quoted(extension) + " is not an extension such as html");
    read_type(f, types[lower]);
  });
  map.finish();
}

// A prefix of keys: no octet that could end one.
void read_namespace(const Field& field, std::string& out) {
  std::string text;
  read_text(field, text, Empty::allowed);
  if (text.size() > 200 ||
      std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) <= 0x20; }))
    field.error("is not how a key begins: up to 200 bytes without blanks");
  else
    out = std::move(text);
}

}  // namespace

void begin_memcached_pool(Pool& pool) {
  pool.protocol = Protocol::memcached;
  pool.failover = Failover::fail_fast;
  pool.timeouts = {.connect = 250ms, .response = 1s, .idle = 5min, .total = 0ms};
}

void read_memcached(const Field& field, Memcached& memcached) {
  MapReader map(field);
  map.read("key", [&](const Field& f) { read_key(f, memcached.key); });
  map.read("long_key", choice(memcached.long_key, kLongKey));
  map.read("layout", choice(memcached.layout, kLayout));
  map.read("gzip_flag", integer(memcached.gzip_flag, 0, UINT32_MAX));
  map.read("etag", choice(memcached.etag, kEtag));
  map.read("default_type", [&](const Field& f) { read_type(f, memcached.default_type); });
  map.read("types", [&](const Field& f) { read_types(f, memcached.types); });
  map.read("writable", on_off(memcached.writable));
  map.read("ttl", duration(memcached.ttl, 0ms));
  map.read("max_ttl", duration(memcached.max_ttl, 0ms));
  map.read("fill", on_off(memcached.fill));
  map.read("negative_ttl", [&](const Field& f) {
    duration(memcached.negative_ttl, 0ms)(f);
    if (memcached.negative_ttl > 0ms && memcached.layout == Memcached::Layout::raw)
      f.problem("needs layout: http; a raw value has no place for the status");
  });
  map.read("budget", duration(memcached.budget, 1ms));
  map.read("on_read_error", choice(memcached.error_on_read, kOnReadError));
  map.read("allow_flush", on_off(memcached.allow_flush));
  map.read("namespace", [&](const Field& f) { read_namespace(f, memcached.hash_namespace); });
  map.read("server_connections", integer(memcached.server_connections, 1, 64));
  map.read("down_after", integer(memcached.down_after, 1, 100'000));
  map.read("retry_interval", duration(memcached.retry_interval, 50ms));
  map.read("failover_ttl", duration(memcached.failover_ttl, 0ms));
  map.read("on_return", choice(memcached.on_return, kOnReturn));
  map.finish();
}

}  // namespace clockwise::config
