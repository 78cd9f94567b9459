#include "config/listeners.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/pools.h"
#include "config/routes.h"

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Choice<Protocol>, 2> kProtocols{
    {{"http", Protocol::http}, {"memcached", Protocol::memcached}}};
constexpr std::array<Choice<ForwardedStyle>, 3> kForwardedStyles{
    {{"x-forwarded-for", ForwardedStyle::x_forwarded_for},
     {"forwarded", ForwardedStyle::forwarded},
     {"off", ForwardedStyle::off}}};

struct Listed {
  Listener listener;
  Place name;
  Place address;
  Field field;
};

void read_max_connections(const Field& field, std::uint32_t& out) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  if (scalar->text == "auto")
    out = 0;
  else if (!parse_integer(scalar->text, 1, 10'000'000))
    field.error("is not a whole number from 1 to 10000000, or auto");
  else
    integer(out, 1, 10'000'000)(field);
}

void read_first_byte(const Field& field, std::optional<milliseconds>& out) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  if (scalar->text == "auto")
    out.reset();
  else if (const auto parsed = parse_duration(scalar->text, 1ms))
    out = *parsed;
  else
    field.error(parsed.error().message);
}

void read_timeouts(const Field& field, ListenerTimeouts& timeouts) {
  MapReader map(field);
  map.read("first_byte", [&](const Field& f) { read_first_byte(f, timeouts.first_byte); });
  map.read("header", duration(timeouts.header, 1ms));
  map.read("body", duration(timeouts.body, 1ms));
  map.read("idle", duration(timeouts.idle, 1ms));
  map.read("write", duration(timeouts.write, 1ms));
  map.read("request", duration(timeouts.request, 0ms));
  map.finish();
}

void read_trust(const Field& field, std::vector<Network>& trust) {
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return;
  trust.clear();
  for (const Field& item : *items) value(trust.emplace_back(), parse_network)(item);
}

void read_forwarded(const Field& field, Forwarded& forwarded) {
  MapReader map(field);
  map.read("trust", [&](const Field& f) { read_trust(f, forwarded.trust); });
  map.read("by", choice(forwarded.by, kForwardedStyles));
  map.finish();
}

// What clients of HTTP can be limited in.
void read_http_limits(MapReader& map, Limits& limits) {
  map.read("requests", integer(limits.requests, 0, 1'000'000'000));
  map.read("pipelined", integer(limits.pipelined, 1, 10'000));
  map.read("header_size", size(limits.header_size, 1ULL << 10, 1ULL << 20));
  std::optional<Field> uri;
  map.read("uri_size", [&](const Field& f) {
    size(limits.uri_size, 1ULL << 8, 1ULL << 20)(f);
    uri = f;
  });
  map.read("headers", integer(limits.headers, 1, 10'000));
  map.read("body_size", size(limits.body_size, 0, 1ULL << 60));
  for (const std::string_view key : {"unanswered", "unsent", "gather"})
    map.refuse(key, kForMemcached);
  map.read("buffered", size(limits.buffered, 1ULL << 20, 1ULL << 40));
  if (uri && limits.uri_size > limits.header_size)
    uri->error("is more than limits.header_size, of which the target is a part");
  else
    limits.uri_size = std::min(limits.uri_size, limits.header_size);
}

void read_memcached_limits(MapReader& map, Limits& limits) {
  for (const std::string_view key :
       {"requests", "pipelined", "header_size", "uri_size", "headers", "body_size"})
    map.refuse(key, kForHttp);
  map.read("unanswered", size(limits.unanswered, 1ULL << 10, 1ULL << 40));
  map.read("unsent", size(limits.unsent, 1ULL << 10, 1ULL << 40));
  map.read("gather", share(limits.gather));
  map.read("buffered", size(limits.buffered, 1ULL << 20, 1ULL << 40));
}

void read_limits(const Field& field, Protocol protocol, Limits& limits) {
  MapReader map(field);
  map.read("max_connections",
           [&](const Field& f) { read_max_connections(f, limits.max_connections); });
  map.read("per_client", integer(limits.per_client, 0, 10'000'000));
  if (protocol == Protocol::http)
    read_http_limits(map, limits);
  else
    read_memcached_limits(map, limits);
  map.finish();
}

void read_memcached_timeouts(const Field& field, ListenerTimeouts& timeouts) {
  MapReader map(field);
  for (const std::string_view key : {"first_byte", "header", "request"}) map.refuse(key, kForHttp);
  map.read("body", duration(timeouts.body, 1ms));
  map.read("idle", duration(timeouts.idle, 0ms));
  map.read("write", duration(timeouts.write, 1ms));
  map.finish();
}

void read_of_http(MapReader& map, Listener& listener) {
  map.read("timeouts", [&](const Field& f) { read_timeouts(f, listener.timeouts); });
  map.read("forwarded", [&](const Field& f) { read_forwarded(f, listener.forwarded); });
  map.read("debug_headers", on_off(listener.debug_headers));
}

void read_of_memcached(MapReader& map, Listener& listener) {
  // Clients keep their connections, and do not expect to lose them.
  listener.timeouts.idle = 0ms;
  map.read("timeouts", [&](const Field& f) { read_memcached_timeouts(f, listener.timeouts); });
  map.refuse("forwarded", "is not for memcached: no line says for whom a request is");
  map.refuse("debug_headers", "is not for memcached: its answers have no headers");
}

Listed read_listener(const Field& field, std::span<const Pool> pools,
                     std::span<const std::string_view> caches) {
  Listed out{.listener = {}, .name = field.place(), .address = field.place(), .field = field};
  Listener& listener = out.listener;
  MapReader map(field);
  map.require("name", [&](const Field& f) {
    out.name = f.place();
    name(listener.name)(f);
  });
  map.require("address", [&](const Field& f) {
    out.address = f.place();
    address(listener.address, PortRule::listening)(f);
  });
  map.read("protocol", choice(listener.protocol, kProtocols));
  const Protocol protocol = listener.protocol;
  map.require("pool", [&](const Field& f) {
    read_pool_name(f, pools, spoken_behind(protocol), listener.pool);
  });
  map.read("routes",
           [&](const Field& f) { listener.routes = read_routes(f, protocol, pools, caches); });
  map.read("tls", only_off);
  map.read("proxy_protocol", only_off);
  map.read("limits", [&](const Field& f) { read_limits(f, protocol, listener.limits); });
  if (protocol == Protocol::http)
    read_of_http(map, listener);
  else
    read_of_memcached(map, listener);
  map.refuse("role");
  map.refuse("origin");
  map.finish();
  return out;
}

bool is_same(const Address& a, const Address& b) {
  if (a.is_unix() || b.is_unix()) return a.path == b.path;
  return !a.host.empty() && a.host == b.host && a.port == b.port && a.port != 0;
}

// One port, and one of the two takes it on every interface.
bool overlaps(const Address& a, const Address& b) {
  const auto wildcard = [](const Address& x) { return x.host == "0.0.0.0" || x.host == "::"; };
  return !a.host.empty() && !b.host.empty() && a.port == b.port && a.port != 0 &&
         (wildcard(a) || wildcard(b));
}

void check_pair(const Listed& first, const Listed& second) {
  if (!second.listener.name.empty() && first.listener.name == second.listener.name)
    second.field.problem_at(second.name,
                            fmt::format("duplicate listener name {}, already on line {}",
                                        quoted(second.listener.name), first.name.line),
                            ".name");
  const std::string shown = quoted(second.listener.address.text);
  if (is_same(first.listener.address, second.listener.address))
    second.field.problem_at(second.address,
                            fmt::format("duplicate listener address {}, already on line {}", shown,
                                        first.address.line));
  else if (overlaps(first.listener.address, second.listener.address))
    second.field.warn_at(
        second.address,
        fmt::format("{} shares its port with the listener on line {}", shown, first.address.line),
        ".address");
}

void check_admin(const Listed& listed, const Address& admin) {
  const std::string shown = quoted(listed.listener.address.text);
  if (is_same(listed.listener.address, admin))
    listed.field.problem_at(listed.address, fmt::format("{} is the address of admin", shown),
                            ".address");
  else if (overlaps(listed.listener.address, admin))
    listed.field.warn_at(listed.address, fmt::format("{} shares its port with admin", shown),
                         ".address");
}

constexpr std::size_t kMaxListeners = 1'000;

}  // namespace

std::vector<Listener> read_listeners(const Field& field, std::span<const Pool> pools,
                                     std::span<const std::string_view> caches,
                                     const Address& admin) {
  std::vector<Listener> listeners;
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return listeners;
  if (items->empty()) field.problem("has no listener; at least one is needed");
  if (items->size() > kMaxListeners) {
    field.problem(fmt::format("has more than {} listeners", kMaxListeners));
    return listeners;
  }
  std::vector<Listed> listed;
  for (const Field& item : *items) {
    listed.push_back(read_listener(item, pools, caches));
    for (std::size_t i = 0; i + 1 < listed.size(); ++i) check_pair(listed[i], listed.back());
    check_admin(listed.back(), admin);
  }
  for (Listed& one : listed) listeners.push_back(std::move(one.listener));
  return listeners;
}

}  // namespace clockwise::config
