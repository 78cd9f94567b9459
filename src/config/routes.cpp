#include "config/routes.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/caches.h"
#include "config/pools.h"
#include "http/authority.h"
#include "http/octets.h"

namespace clockwise::config {
namespace {

// A request is compared with one after another.
constexpr std::size_t kMaxRoutes = 1'000;

constexpr std::string_view kAnyLabels = "*.";

bool is_wildcard(std::string_view host) { return host.starts_with(kAnyLabels); }

bool is_host(std::string_view text) {
  if (is_wildcard(text)) text.remove_prefix(kAnyLabels.size());
  return http::is_authority(text) && http::host_of(text) == text &&
         text.find('*') == std::string_view::npos;
}

// The query takes no part.
bool is_path_prefix(std::string_view text) {
  return text.starts_with('/') && std::ranges::all_of(text, [](char c) {
           return c > ' ' && c < 0x7f && c != '?' && c != '#';
         });
}

void read_host(const Field& field, std::string_view text, std::string& out) {
  if (!is_host(text))
    return field.error("is not a host such as img.example.com, or *.example.com, without a port");
  out = http::site_of(text);
  std::ranges::transform(out, out.begin(), http::lower);
}

void read_path_prefix(const Field& field, std::string_view text, std::string& out) {
  if (is_path_prefix(text))
    out = text;
  else
    field.error("is not how a path begins: with /, and with no blank, ? or # in it");
}

// Octets that a key can have.
void read_key_prefix(const Field& field, std::string_view text, std::string& out) {
  if (text.size() <= 250 &&
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) > 0x20; }))
    out = text;
  else
    field.error("is not how a key begins: up to 250 bytes without blanks");
}

void read_match(const Field& field, Protocol protocol, Route& route) {
  bool any = true;  // as far as is written, right or wrong
  const auto part = [&](auto read, std::string& out) {
    return [&any, &out, read](const Field& f) {
      const std::optional<Scalar> scalar = f.scalar();
      if (scalar && scalar->text.empty()) return;
      any = false;
      if (scalar) read(f, scalar->text, out);
    };
  };
  MapReader map(field);
  if (protocol == Protocol::http) {
    map.read("host", part(read_host, route.host));
    map.read("path_prefix", part(read_path_prefix, route.path_prefix));
    if (map.refuse("key_prefix", kForMemcached)) any = false;
  } else {
    map.read("key_prefix", part(read_key_prefix, route.key_prefix));
    for (const std::string_view key : {"host", "path_prefix"})
      if (map.refuse(key, kForHttp)) any = false;
  }
  map.finish();
  if (any && map.is_map())
    field.problem(protocol == Protocol::http ? "names neither a host nor a path_prefix"
                                             : "names no key_prefix");
}

void read_cache_of_route(const Field& field, std::span<const Pool> pools,
                         std::span<const std::string_view> caches, Route& route) {
  read_cache_name(field, caches, route.cache);
  if (!route.cache) route.cache = "";
  const auto pool = std::ranges::find(pools, route.pool, &Pool::name);
  if (*route.cache != "" && pool != pools.end() && pool->protocol == Protocol::memcached)
    field.problem(fmt::format("keeps answers of HTTP servers; those of {} speak memcached",
                              quoted(route.pool)));
}

Route read_route(const Field& field, Protocol protocol, std::span<const Pool> pools,
                 std::span<const std::string_view> caches) {
  Route route;
  MapReader map(field);
  map.require("match", [&](const Field& f) { read_match(f, protocol, route); });
  map.require("pool", [&](const Field& f) {
    read_pool_name(f, pools, spoken_behind(protocol), route.pool);
  });
  if (protocol == Protocol::http)
    map.read("cache", [&](const Field& f) { read_cache_of_route(f, pools, caches, route); });
  else
    map.refuse("cache", kForHttp);
  map.finish();
  return route;
}

bool covers_host(std::string_view wide, std::string_view narrow) {
  if (wide.empty() || wide == narrow) return true;
  return is_wildcard(wide) && narrow.ends_with(wide.substr(1)) && narrow.size() >= wide.size();
}

bool covers(const Route& wide, const Route& narrow) {
  return covers_host(wide.host, narrow.host) && narrow.path_prefix.starts_with(wide.path_prefix) &&
         narrow.key_prefix.starts_with(wide.key_prefix);
}

void warn_of_unreached(const std::vector<Field>& items, const std::vector<Route>& routes) {
  for (std::size_t i = 1; i < routes.size(); ++i) {
    const auto before = routes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto first = std::find_if(routes.begin(), before,
                                    [&](const Route& one) { return covers(one, routes[i]); });
    if (first == before) continue;
    const Field& wide = items[static_cast<std::size_t>(first - routes.begin())];
    items[i].warn_at(
        items[i].place(),
        fmt::format("is never reached: all of it goes by the route on line {}", wide.place().line));
  }
}

}  // namespace

std::vector<Route> read_routes(const Field& field, Protocol protocol, std::span<const Pool> pools,
                               std::span<const std::string_view> caches) {
  std::vector<Route> routes;
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return routes;
  if (items->size() > kMaxRoutes) {
    field.problem(fmt::format("has more than {} routes", kMaxRoutes));
    return routes;
  }
  for (const Field& item : *items) routes.push_back(read_route(item, protocol, pools, caches));
  warn_of_unreached(*items, routes);
  return routes;
}

}  // namespace clockwise::config
