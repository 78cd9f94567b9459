#include "config/caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "config/keys.h"
#include "config/pools.h"
#include "http/octets.h"

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Choice<bool>, 2> kStores{{{"memory", false}, {"memcached", true}}};
constexpr std::array<Choice<bool>, 2> kRequestControl{{{"ignore", false}, {"honour", true}}};
constexpr std::array<Choice<Cache::SetCookie>, 3> kSetCookie{{{"bypass", Cache::SetCookie::bypass},
                                                              {"store", Cache::SetCookie::store},
                                                              {"strip", Cache::SetCookie::strip}}};

constexpr std::uint64_t kMinSize = 1ULL << 20;
constexpr std::uint64_t kMaxSize = 512ULL << 30;
// So that one object never drives out most of the others.
constexpr std::uint64_t kObjectsAtLeast = 4;

// `size` and `max_object`. Without a word about the latter a small cache takes what fits.
void read_sizes(MapReader& map, Cache& cache) {
  map.read("size", size(cache.size, kMinSize, kMaxSize));
  const std::uint64_t most = cache.size / kObjectsAtLeast;
  const bool written = map.read("max_object", [&](const Field& f) {
    size(cache.max_object, 1ULL << 10, kMaxSize / kObjectsAtLeast)(f);
    if (cache.max_object > most)
      f.error(fmt::format("is more than a quarter of the size, {}; at most {} would fit",
                          size_text(cache.size), size_text(most)));
  });
  if (!written) cache.max_object = std::min(cache.max_object, most);
}

void read_share_or_off(const Field& field, std::optional<double>& out) {
  if (is_off(field)) return out.reset();
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  if (const auto parsed = parse_share(scalar->text))
    out = *parsed;
  else
    field.error(parsed.error().message + ", or off");
}
auto share_or_off(std::optional<double>& out) {
  return [&out](const Field& field) { read_share_or_off(field, out); };
}

void read_targeted(const Field& field, std::vector<std::string>& targeted) {
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return;
  targeted.clear();
  for (const Field& item : *items) {
    const std::optional<Scalar> scalar = item.scalar();
    if (scalar && !http::is_token(scalar->text))
      item.error("is not the name of a field such as CDN-Cache-Control");
    else if (scalar)
      targeted.push_back(scalar->text);
  }
}

void read_lifetimes(MapReader& map, Cache& cache) {
  map.read("default_ttl", duration(cache.default_ttl, 0ms));
  map.read("negative_ttl", duration(cache.negative_ttl, 0ms));
  map.read("heuristic", share_or_off(cache.heuristic));
  map.read("ttl_jitter", share(cache.ttl_jitter));
  map.read("refresh_ahead", share_or_off(cache.refresh_ahead));
  map.read("stale_while_revalidate", duration(cache.stale_while_revalidate, 0ms));
  map.read("stale_if_error", duration(cache.stale_if_error, 0ms));
  map.read("stale_after", duration(cache.stale_after, 1ms));
}

void read_fetching(MapReader& map, Cache& cache) {
  map.read("coalesce", on_off(cache.coalesce));
  map.read("coalesce_timeout", duration(cache.coalesce_timeout, 1ms));
  map.read("coalesce_waiters", integer(cache.coalesce_waiters, 1, 10'000'000));
  map.read("hit_for_miss", duration(cache.hit_for_miss, 0ms));
  map.read("finish_fill", share(cache.finish_fill));
}

void read_rules(MapReader& map, Cache& cache) {
  map.read("set_cookie", choice(cache.set_cookie, kSetCookie));
  map.read("request_cache_control", choice(cache.honour_requests, kRequestControl));
  map.read("targeted", [&](const Field& f) { read_targeted(f, cache.targeted); });
  map.read("surrogate_control", on_off(cache.surrogate_control));
}

void read_keys(MapReader& map, Cache& cache) {
  map.read("key", [&](const Field& f) { read_cache_key(f, cache.key); });
  map.read("key_ignore", [&](const Field& f) { read_key_ignore(f, cache.key, cache.key_ignore); });
  map.read("vary_limit", integer(cache.vary_limit, 1, 100'000));
  map.read("show_key", on_off(cache.show_key));
}

// It begins keys of at most 250 bytes.
void read_namespace(const Field& field, std::string& out) {
  std::string text;
  read_text(field, text, Empty::refused);
  if (text.empty()) return;
  if (const auto name = parse_name(text))
    out = *name;
  else
    field.error(name.error().message);
}

// The pool that the second store is; it is looked up once all pools are known.
void read_pool(MapReader& map, Cache& cache) {
  bool memcached = false;
  map.read("store", choice(memcached, kStores));
  if (!memcached) {
    for (const std::string_view key : {"pool", "namespace", "pool_budget", "pool_wait"})
      map.refuse(key, "belongs to store: memcached");
    return;
  }
  map.require("pool", text(cache.pool.emplace(), Empty::refused));
  map.read("namespace", [&](const Field& f) { read_namespace(f, cache.pool_namespace); });
  map.read("pool_budget", duration(cache.pool_budget, 1ms));
  map.read("pool_wait", duration(cache.pool_wait, 0ms));
}

Cache read_cache(const Field& field, std::string name) {
  Cache cache;
  cache.name = std::move(name);
  MapReader map(field);
  read_pool(map, cache);
  read_sizes(map, cache);
  read_lifetimes(map, cache);
  read_fetching(map, cache);
  read_rules(map, cache);
  read_keys(map, cache);
  map.finish();
  return cache;
}

// `off` would be a cache that no pool can name.
void check_name(const std::string& key, const Field& field) {
  const auto name = parse_name(key);
  if (!name)
    field.problem_at(field.key_place(), fmt::format("{} {}", quoted(key), name.error().message));
  else if (key == "off")
    field.problem_at(field.key_place(), "is no name for a cache: cache: off means none");
}

bool is_used(std::string_view cache, const Config& config) {
  const auto uses = [&](const auto& one) { return one.cache == cache; };
  return std::ranges::any_of(config.pools, uses) ||
         std::ranges::any_of(config.listeners, [&](const Listener& listener) {
           return std::ranges::any_of(listener.routes, uses);
         });
}

}  // namespace

std::vector<Cache> read_caches(const Field& field) {
  std::vector<Cache> caches;
  MapReader map(field);
  map.read_each([&](const std::string& key, const Field& f) {
    check_name(key, f);
    caches.push_back(read_cache(f, key));
  });
  map.finish();
  std::ranges::sort(caches, {}, &Cache::name);
  return caches;
}

void read_cache_name(const Field& field, std::span<const std::string_view> caches,
                     std::optional<std::string>& out) {
  if (is_off(field)) return out.reset();
  read_reference(field, "cache", caches, out.emplace());
}

void add_fill_caches(Config& config) {
  constexpr std::uint64_t kSize = 64ULL << 20;
  for (Pool& pool : config.pools) {
    if (!pool.memcached.fill) continue;
    Cache cache;
    cache.name = pool.name + ".fill";
    cache.size = kSize;
    cache.max_object = kSize / kObjectsAtLeast;
    cache.negative_ttl = pool.memcached.negative_ttl;
    cache.key = pool.ring.key;
    pool.cache = cache.name;
    if (config.cache(cache.name) == nullptr) config.caches.push_back(std::move(cache));
  }
  std::ranges::sort(config.caches, {}, &Cache::name);
}

void check_pools_of_caches(const Field& field, const Config& config) {
  std::map<std::pair<std::string, std::string>, std::string_view> seen;  // pool, namespace: cache
  for (const Entry& entry : field.node().entries) {
    const Cache* const cache = config.cache(entry.key);
    if (cache == nullptr || !cache->pool || cache->pool->empty()) continue;
    const Field written = field.child(entry);
    const std::vector<Entry>& settings = written.node().entries;
    const auto setting = std::ranges::find(settings, "pool", &Entry::key);
    if (setting == settings.end()) continue;  // the same name once more
    const Field pool = written.child(*setting);
    std::string name;
    read_pool_name(pool, config.pools, Protocol::memcached, name);
    const auto [first, fresh] = seen.emplace(std::pair(name, cache->pool_namespace), cache->name);
    if (fresh || first->second == cache->name) continue;
    pool.warn_at(pool.place(),
                 fmt::format("{} has the namespace {} there for cache {} too: what one keeps the "
                             "other would give",
                             quoted(name), quoted(cache->pool_namespace), quoted(first->second)));
  }
}

void warn_of_unused_caches(const Field& field, const Config& config) {
  for (const Entry& entry : field.node().entries)
    if (!is_used(entry.key, config))
      field.child(entry).warn_at(entry.place, "is used by no pool and no route");
}

}  // namespace clockwise::config
