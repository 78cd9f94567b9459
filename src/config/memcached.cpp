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

// text/html, with parameters behind it or not. No text of the configuration can end a field.
bool is_media_type(std::string_view text) {
  const std::string_view type = text.substr(0, text.find_first_of("; "));
  const std::size_t slash = type.find('/');
  return slash != std::string_view::npos && http::is_token(type.substr(0, slash)) &&
         http::is_token(type.substr(slash + 1));
}

void read_type(const Field& field, std::string& out) {
  std::string type;
  read_text(field, type, Empty::refused);
  if (type.empty()) return;
  if (is_media_type(type))
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
    if (types.contains(lower))
      f.problem_at(f.key_place(), quoted(extension) + " stands here already, in other case");
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

// Servers count the life of an item in seconds, and take 0 as no end.
enum class Endless { allowed, refused };
void read_lifetime(const Field& field, milliseconds& out, Endless endless = Endless::allowed) {
  milliseconds found = out;
  duration(found, 0ms)(field);
  if (found < 1s && (found > 0ms || endless == Endless::refused))
    field.error("is less than 1s: servers count the life of an item in seconds");
  else
    out = found;
}

void read_lifetimes(MapReader& map, Memcached& memcached) {
  std::optional<Field> ttl;
  map.read("ttl", [&](const Field& f) {
    read_lifetime(f, memcached.ttl);
    ttl = f;
  });
  map.read("max_ttl", [&](const Field& f) { read_lifetime(f, memcached.max_ttl); });
  if (ttl && memcached.max_ttl > 0ms && memcached.ttl > memcached.max_ttl)
    ttl->warn_at(ttl->place(), "is more than max_ttl, which is what counts");
  map.read("negative_ttl", [&](const Field& f) {
    read_lifetime(f, memcached.negative_ttl);
    if (memcached.negative_ttl > 0ms && memcached.layout == Memcached::Layout::raw)
      f.problem("needs layout: http; a raw value has no place for the status");
  });
  map.read("failover_ttl",
           [&](const Field& f) { read_lifetime(f, memcached.failover_ttl, Endless::refused); });
}

}  // namespace

void begin_memcached_pool(Pool& pool) {
  pool.protocol = Protocol::memcached;
  pool.failover = Failover::fail_fast;
  pool.timeouts = {.connect = 250ms, .response = 1s, .idle = 5min, .total = 0ms};
}

void read_memcached(const Field& field, Pool& pool) {
  Memcached& memcached = pool.memcached;
  MapReader map(field);
  map.read("key", [&](const Field& f) { read_key(f, pool.ring.key); });
  map.read("long_key", choice(memcached.long_key, kLongKey));
  map.read("layout", choice(memcached.layout, kLayout));
  map.read("gzip_flag", integer(memcached.gzip_flag, 0, UINT32_MAX));
  map.read("etag", choice(memcached.etag, kEtag));
  map.read("default_type", [&](const Field& f) { read_type(f, memcached.default_type); });
  map.read("types", [&](const Field& f) { read_types(f, memcached.types); });
  map.read("writable", on_off(memcached.writable));
  read_lifetimes(map, memcached);
  map.read("fill", [&](const Field& f) {
    read_switch(f, memcached.fill);
    if (memcached.fill && !pool.fallback) f.problem("needs a fallback, whose answers are stored");
  });
  map.read("budget", duration(memcached.budget, 1ms));
  map.read("on_read_error", choice(memcached.error_on_read, kOnReadError));
  map.read("allow_flush", on_off(memcached.allow_flush));
  map.read("namespace", [&](const Field& f) { read_namespace(f, pool.ring.scheme.key_namespace); });
  map.read("server_connections", integer(memcached.server_connections, 1, 64));
  map.read("down_after", integer(memcached.down_after, 1, 100'000));
  map.read("retry_interval", duration(memcached.retry_interval, 50ms));
  map.read("on_return", choice(memcached.on_return, kOnReturn));
  map.finish();
}

}  // namespace clockwise::config
