#include "config/pools.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/attempts.h"
#include "config/caches.h"
#include "config/health.h"
#include "config/memcached.h"
#include "config/ring.h"
#include "config/servers.h"

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Choice<Protocol>, 2> kProtocols{
    {{"http", Protocol::http}, {"memcached", Protocol::memcached}}};
constexpr std::array<Choice<bool>, 4> kHandoffModes{
    {{"none", true}, {"ramp", {}}, {"warm", {}}, {"copy", {}}}};
constexpr std::array<Choice<Failover>, 2> kFailover{
    {{"next", Failover::next}, {"fail_fast", Failover::fail_fast}}};
constexpr std::array<Choice<Resolve>, 2> kResolve{
    {{"start", Resolve::start}, {"lazy", Resolve::lazy}}};

// Of the pools that a message names.
constexpr std::size_t kShown = 5;

void read_handoff(const Field& field, Handoff& handoff) {
  bool mode = true;
  double budget = 0;
  milliseconds window{0};
  MapReader map(field);
  map.read("mode", choice(mode, kHandoffModes));
  // Of no effect without a mode; still checked, so that a later change of the mode is no surprise.
  map.read("window", [&](const Field& f) {
    const std::optional<Scalar> scalar = f.scalar();
    if (scalar && scalar->text != "auto") duration(window, 0ms)(f);
  });
  map.read("budget", share(budget));
  map.read("max_window", duration(handoff.max_window, 0ms));
  map.finish();
}

void read_timeouts(const Field& field, PoolTimeouts& timeouts) {
  MapReader map(field);
  map.read("connect", duration(timeouts.connect, 1ms));
  map.read("response", duration(timeouts.response, 1ms));
  map.read("idle", duration(timeouts.idle, 1ms));
  map.read("total", duration(timeouts.total, 0ms));
  map.finish();
}

// Where a pool has its servers from: exactly one of `servers` and `servers_from`.
class Membership {
 public:
  Membership(Pool& pool, UpstreamFiles& files, const WrittenRing& ring)
      : pool_(pool), files_(files), ring_(ring) {}

  void read(const Field& pool_field, MapReader& map) {
    const bool listed =
        map.read("servers", [&](const Field& f) { pool_.servers = read_servers(f, ring_); });
    std::optional<Field> from;
    map.read("servers_from", [&](const Field& f) { from = f; });
    if (from && listed)
      from->problem_at(from->key_place(),
                       "stands beside servers: a pool has one source of servers");
    else if (from)
      read_source(*from);
    else if (!listed)
      missing(pool_field, map);
  }

 private:
  static void missing(const Field& pool_field, const MapReader& map) {
    if (!map.is_map()) return;
    const std::vector<Entry>& entries = pool_field.node().entries;
    pool_field.problem_at(entries.empty() ? pool_field.place() : entries.front().place,
                          "the key \"servers\" is missing (or servers_from: {file: …})");
  }

  void read_source(const Field& from) {
    MapReader map(from);
    map.refuse("dns");
    map.refuse("etcd");
    const bool other =
        std::any_of(from.node().entries.begin(), from.node().entries.end(),
                    [](const Entry& e) { return e.key == "dns" || e.key == "etcd"; });
    if (!map.read("file", [&](const Field& f) { read_file(f); }) && !other) map.missing("file");
    map.finish();
  }

  void read_file(const Field& field) {
    std::string name;
    read_text(field, name, Empty::refused);
    if (name.empty()) return;
    const std::string path = files_.resolve(name);
    const Reading& reading = field.reading();
    const auto& text = files_.text_of(path);
    pool_.servers_file = path;
    if (text.index() == 0) {
      pool_.servers = files_.servers_of(path, ring_, reading);
      return;
    }
    reading.report.error(
        reading.source.problem(field.place(), fmt::format("{}: {} cannot be read: {}", field.path(),
                                                          quoted(path), std::get<1>(text))),
        FailureCode::unreadable);
  }

  Pool& pool_;
  UpstreamFiles& files_;
  const WrittenRing& ring_;
};

void read_of_http(MapReader& map, Pool& pool, std::span<const std::string_view> caches) {
  map.read("retry", [&](const Field& f) { read_retry(f, pool.retry); });
  map.read("hedge", [&](const Field& f) { read_hedge(f, pool.hedge); });
  map.read("fallback", only_off);
  map.read("memcached", [](const Field& f) {
    if (!is_off(f)) f.problem("is for pools with protocol: memcached");
  });
  map.read("cache", [&](const Field& f) { read_cache_name(f, caches, pool.cache); });
}

// The pool is looked up once all are known.
void read_fallback(const Field& field, std::optional<std::string>& out,
                   std::vector<Field>& fallbacks) {
  if (is_off(field)) return out.reset();
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  out = scalar->text;
  fallbacks.push_back(field);
}

void read_of_memcached(MapReader& map, Pool& pool) {
  map.refuse("retry",
             "is not for memcached servers: what may be sent again follows from a command");
  map.read("hedge", only_off);
  map.read("cache", only_off);
  map.read("memcached", [&](const Field& f) { read_memcached(f, pool); });
}

// Writes pass a server by while it is out; what it held before is old when it comes back.
void warn_of_old_values(const Pool& pool, const WrittenRing& ring,
                        const std::optional<Field>& failover, const std::optional<Field>& outlier) {
  if (pool.memcached.on_return == Memcached::OnReturn::distrust) return;
  constexpr std::string_view kWarning =
      "a server that was out gives values from before again, though they were written or deleted "
      "elsewhere meanwhile; memcached: {on_return: distrust} forgets them first";
  if (failover && pool.failover == Failover::next)
    failover->warn_at(failover->place(), kWarning);
  else if (outlier && pool.outlier)
    outlier->warn_at(outlier->key_place(), kWarning);
  else if (ring.replicas && pool.ring.replicas > 1)
    ring.replicas->warn_at(ring.replicas->place(), kWarning);
}

void warn_of_replicas(const Pool& pool, const WrittenRing& ring) {
  if (!ring.replicas || pool.ring.replicas <= pool.servers.size()) return;
  ring.replicas->warn_at(
      ring.replicas->place(),
      fmt::format("{} is more than the number of servers, {}: each item is on all of them",
                  pool.ring.replicas, pool.servers.size()));
}

Pool read_pool(const Field& field, std::string name, UpstreamFiles& files,
               std::span<const std::string_view> caches, std::vector<Field>& fallbacks) {
  Pool pool;
  pool.name = std::move(name);
  std::optional<Field> outlier, failover;
  MapReader map(field);
  map.read("protocol", choice(pool.protocol, kProtocols));
  const bool memcached = pool.protocol == Protocol::memcached;
  if (memcached) begin_memcached_pool(pool);
  WrittenRing ring = default_ring(pool.protocol);
  map.read("ring", [&](const Field& f) { ring = read_ring(f, pool.protocol); });
  pool.ring = ring.ring;
  if (memcached)
    map.read("fallback", [&](const Field& f) { read_fallback(f, pool.fallback, fallbacks); });
  ring.may_own_nothing = pool.fallback.has_value();
  Membership(pool, files, ring).read(field, map);
  map.read("handoff", [&](const Field& f) { read_handoff(f, pool.handoff); });
  map.read("max_remap", share(pool.max_remap));
  map.read("max_shrink", share(pool.max_shrink));
  map.read("health", [&](const Field& f) { read_health(f, pool.protocol, pool.health); });
  map.read("outlier", [&](const Field& f) {
    read_outlier(f, pool.outlier);
    outlier = f;
  });
  map.read("panic", share(pool.panic));
  map.read("timeouts", [&](const Field& f) { read_timeouts(f, pool.timeouts); });
  map.read("resolve", choice(pool.resolve, kResolve));
  map.read("connections", [&](const Field& f) { read_connections(f, pool.connections); });
  map.read("tls", only_off);
  map.read("failover", [&](const Field& f) {
    choice(pool.failover, kFailover)(f);
    failover = f;
  });
  if (memcached)
    read_of_memcached(map, pool);
  else
    read_of_http(map, pool, caches);
  map.finish();
  if (memcached) warn_of_old_values(pool, ring, failover, outlier);
  warn_of_replicas(pool, ring);
  return pool;
}

}  // namespace

std::vector<Pool> read_pools(const Field& field, UpstreamFiles& files,
                             std::span<const std::string_view> caches) {
  std::vector<Pool> pools;
  if (field.node().kind != Kind::map) {
    MapReader(field).finish();
    return pools;
  }
  if (field.node().entries.empty()) field.problem("has no pool; at least one is needed");
  std::vector<Field> fallbacks;
  MapReader map(field);
  map.read_each([&](const std::string& key, const Field& f) {
    const auto name = parse_name(key);
    if (!name) f.problem_at(f.key_place(), fmt::format("{} {}", quoted(key), name.error().message));
    pools.push_back(read_pool(f, key, files, caches, fallbacks));
  });
  map.finish();
  std::string ignored;
  for (const Field& fallback : fallbacks) read_pool_name(fallback, pools, Protocol::http, ignored);
  std::sort(pools.begin(), pools.end(),
            [](const Pool& a, const Pool& b) { return a.name < b.name; });
  return pools;
}

void read_pool_name(const Field& field, std::span<const Pool> pools,
                    std::optional<Protocol> protocol, std::string& out) {
  std::vector<std::string_view> known;
  for (const Pool& pool : pools)
    if (!protocol || pool.protocol == *protocol) known.push_back(pool.name);
  if (!protocol) return read_reference(field, "pool", known, out);
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  out = scalar->text;
  if (std::ranges::find(known, out) != known.end()) return;
  std::string others = did_you_mean(out, known);
  if (known.empty())
    others = "; there is none";
  else if (others.empty())
    others = fmt::format("; {} would do",
                         list_of(std::span(known).first(std::min(known.size(), kShown))));
  field.error(fmt::format("is not a pool of {} servers{}",
                          *protocol == Protocol::memcached ? "memcached" : "HTTP", others));
}

}  // namespace clockwise::config
