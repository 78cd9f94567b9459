#include "runtime/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "cache/purge_log.h"
#include "cache/store.h"
#include "upstream/pool_key.h"
#include "upstream/traffic.h"

namespace clockwise::runtime {
namespace {

using upstream::Pool;
using upstream::RemapWatch;
using upstream::Routing;

std::shared_ptr<const Pool> pool_of(const Routing* routing, const std::string& name) {
  if (routing != nullptr)
    for (const auto& pool : routing->pools)
      if (pool->config.name == name) return pool;
  return nullptr;
}

const upstream::Server* server_of(const Pool* pool, const std::string& name) {
  if (pool == nullptr) return nullptr;
  const auto found = std::ranges::find(pool->servers, name,
                                       [](const upstream::Server& s) { return s.config.name; });
  return found == pool->servers.end() ? nullptr : &*found;
}

bool same_order(const std::vector<config::Server>& a, const std::vector<config::Server>& b) {
  return std::ranges::equal(a, b, {}, &config::Server::name, &config::Server::name);
}

// What the change costs at the traffic there is. The keys that tell belong to a plan, which is
// asked for before the change.
void add_cost(upstream::Report& report, const upstream::Recent& recent,
              const upstream::Side& before, const upstream::Side& after) {
  upstream::add_traffic(report, recent, before, after, upstream::steady_now());
  report.seen_keys.reset();
}

Result<PoolChange> change_of(const config::Pool& config, const Routing* running) {
  PoolChange change;
  change.config = &config;
  change.running = pool_of(running, config.name);
  const Pool* before = change.running.get();
  if (before != nullptr && upstream::ring_digest(before->config) == upstream::ring_digest(config) &&
      same_order(before->config.servers, config.servers)) {
    change.ring = before->ring;
  } else {
    const auto started = std::chrono::steady_clock::now();
    auto built = upstream::build_ring(config);
    if (!built) return fail(fmt::format("pools.{}: {}", config.name, built.error().message));
    change.ring = std::move(*built);
    change.build_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }
  change.digest = upstream::ring_digest(config, change.ring->order_matters());
  const upstream::Side old_side{before != nullptr ? &before->config : nullptr,
                                before != nullptr ? before->ring.get() : nullptr};
  const upstream::Side new_side{&config, change.ring.get()};
  change.report = upstream::plan(old_side, new_side);
  if (before != nullptr && change.report.changed())
    add_cost(change.report, *before->recent, old_side, new_side);
  return change;
}

// REQUIRES: the pool runs.
bool keeps_positions(const PoolChange& change) {
  const Pool& before = *change.running;
  return upstream::same_positions({&before.config, before.ring.get()},
                                  {change.config, change.ring.get()});
}

// Where each server of the previous list stands in the new one.
std::vector<ring::ServerIndex> index_now(const std::vector<config::Server>& before,
                                         const std::vector<config::Server>& after) {
  std::map<std::string_view, ring::ServerIndex> now;
  for (std::size_t i = 0; i < after.size(); ++i)
    now[after[i].name] = static_cast<ring::ServerIndex>(i);
  std::vector<ring::ServerIndex> out;
  out.reserve(before.size());
  for (const config::Server& server : before) {
    const auto found = now.find(server.name);
    out.push_back(found == now.end() ? RemapWatch::kGone : found->second);
  }
  return out;
}

std::shared_ptr<RemapWatch> watch_of(const PoolChange& change, std::size_t workers,
                                     std::chrono::steady_clock::time_point now) {
  const Pool* before = change.running.get();
  if (before == nullptr) return nullptr;
  const bool same_positions = keeps_positions(change);
  if (change.report.ring_changed()) {
    auto watch = std::make_shared<RemapWatch>(workers);
    watch->previous = before->ring;
    watch->same_positions = same_positions;
    watch->previous_key = before->key;
    watch->now = index_now(before->config.servers, change.config->servers);
    for (const config::Server& server : before->config.servers) watch->names.push_back(server.name);
    watch->until = now + change.config->handoff.max_window;
    return watch;
  }
  if (!before->watch || before->watch->until <= now) return nullptr;
  if (same_positions && same_order(before->config.servers, change.config->servers))
    return before->watch;

  // The list was reordered, or keys have other positions though none of them moved (of a single
  // server), while a change is still counted: the same change, seen from here.
  auto watch = std::make_shared<RemapWatch>(workers);
  watch->previous = before->watch->previous;
  watch->same_positions = before->watch->same_positions && same_positions;
  watch->previous_key = before->watch->previous_key;
  watch->names = before->watch->names;
  watch->until = before->watch->until;
  const auto moved = index_now(before->config.servers, change.config->servers);
  for (const ring::ServerIndex index : before->watch->now)
    watch->now.push_back(index == RemapWatch::kGone ? index : moved[index]);
  return watch;
}

// A server that keeps its name and address keeps its health.
std::vector<upstream::Server> servers_of(const config::Pool& config, const Places& places,
                                         upstream::Directory& directory, const Pool* before) {
  std::unordered_map<std::string_view, const upstream::Server*> known;
  if (before != nullptr)
    for (const upstream::Server& server : before->servers) known[server.config.name] = &server;
  std::vector<upstream::Server> servers;
  servers.reserve(config.servers.size());
  for (const config::Server& server : config.servers) {
    auto backend = directory.backend(config.name, server.name);
    const auto old = known.find(server.name);
    const bool stays = old != known.end() && old->second->config.address == server.address;
    auto health = stays ? old->second->health : std::make_shared<upstream::HealthMark>(backend);
    servers.push_back({.config = server,
                       .endpoints = places.endpoints.at({config.name, server.name}),
                       .backend = std::move(backend),
                       .health = std::move(health)});
  }
  return servers;
}

bool same_places(const Pool& pool, const Places& places) {
  return std::ranges::all_of(pool.servers, [&](const upstream::Server& server) {
    return places.endpoints.at({pool.config.name, server.config.name}) == server.endpoints;
  });
}

// What was asked for lately, unless its positions mean nothing to the new ring.
std::shared_ptr<upstream::Recent> recent_of(const PoolChange& change, std::size_t workers) {
  const bool stays = change.running != nullptr && keeps_positions(change);
  return stays ? change.running->recent : std::make_shared<upstream::Recent>(workers);
}

upstream::CacheUse use_of(const Caches& caches, upstream::Directory& directory,
                          const std::string& pool, const std::string& name) {
  const auto found =
      std::ranges::find(caches.all, name, [](const auto& cache) { return cache->config.name; });
  return {*found, directory.cache(pool, name)};
}

cache::Settings policy_of(const config::Cache& config) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return std::chrono::ceil<std::chrono::seconds>(time).count();  // HTTP counts in them
  };
  cache::Settings policy;
  policy.default_ttl = seconds(config.default_ttl);
  policy.negative_ttl = seconds(config.negative_ttl);
  policy.heuristic = config.heuristic;
  policy.set_cookie = config.set_cookie == config::Cache::SetCookie::store ? cache::SetCookie::store
                      : config.set_cookie == config::Cache::SetCookie::strip
                          ? cache::SetCookie::strip
                          : cache::SetCookie::bypass;
  policy.honour_requests = config.honour_requests;
  policy.stale_while_revalidate = seconds(config.stale_while_revalidate);
  policy.stale_if_error = seconds(config.stale_if_error);
  return policy;
}

std::shared_ptr<upstream::Cache> cache_from(const config::Cache& config) {
  auto cache = std::make_shared<upstream::Cache>();
  cache->config = config;
  cache->policy = policy_of(config);
  // The configuration has seen to it that it can be parsed.
  cache->key = *http::KeyTemplate::parse(config.key, config.key_ignore, http::HostForm::authority);
  for (const std::string& name : cache->config.targeted) cache->targeted.push_back(name);
  if (config.surrogate_control) cache->targeted.push_back("Surrogate-Control");
  return cache;
}

std::shared_ptr<const Pool> pool_from(const PoolChange& change, const Places& places,
                                      const Caches& caches, upstream::Directory& directory,
                                      std::chrono::steady_clock::time_point now) {
  const Pool* before = change.running.get();
  const bool watching = before != nullptr && before->watch;
  const bool watch_stays = !watching || before->watch->until > now;
  const std::string& name = change.config->name;
  upstream::CacheUse cache;
  if (change.config->cache) cache = use_of(caches, directory, name, *change.config->cache);
  std::vector<upstream::CacheUse> route_caches;
  if (const auto found = caches.of_routes.find(name); found != caches.of_routes.end())
    for (const std::string& one : found->second)
      route_caches.push_back(use_of(caches, directory, name, one));
  if (before != nullptr && before->config == *change.config && watch_stays &&
      before->cache == cache && before->route_caches == route_caches &&
      same_places(*before, places))
    return change.running;

  auto pool = std::make_shared<Pool>();
  pool->config = *change.config;
  pool->key = upstream::key_template(change.config->ring);
  pool->ring = change.ring;
  pool->digest = change.digest;
  pool->servers = servers_of(*change.config, places, directory, before);
  pool->counters = directory.pool(change.config->name);
  pool->health = before != nullptr ? before->health
                                   : std::make_shared<upstream::HealthBoard>(change.config->name);
  pool->recent = recent_of(change, directory.max_workers());
  pool->watch = watch_of(change, directory.max_workers(), now);
  pool->cache = std::move(cache);
  pool->route_caches = std::move(route_caches);
  return pool;
}

// Whether purges of the one concern what the other has in its second store.
bool same_shared_store(const config::Cache& a, const config::Cache& b) {
  return a.pool == b.pool && a.pool_namespace == b.pool_namespace;
}

}  // namespace

Result<Changes> build_rings(const config::Config& config, const Routing* running) {
  Changes changes;
  for (const config::Pool& pool : config.pools) {
    auto change = change_of(pool, running);
    if (!change) return change.error();
    changes.pools.push_back(std::move(*change));
  }
  if (running == nullptr) return changes;
  for (const auto& pool : running->pools)
    if (config.pool(pool->config.name) == nullptr)
      changes.removed.push_back(
          upstream::plan({&pool->config, pool->ring.get()}, {nullptr, nullptr}));
  return changes;
}

std::set<std::string> host_names(const config::Config& config) {
  std::set<std::string> names;
  for (const config::Pool& pool : config.pools)
    for (const config::Server& server : pool.servers)
      if (auto name = host_name(server.address)) names.insert(std::move(*name));
  return names;
}

Places place_servers(const config::Config& config, const HostAddresses& hosts,
                     const Routing* running) {
  Places places;
  for (const config::Pool& pool : config.pools) {
    const auto before = pool_of(running, pool.name);
    for (std::size_t i = 0; i < pool.servers.size(); ++i) {
      const config::Server& server = pool.servers[i];
      auto& endpoints = places.endpoints[{pool.name, server.name}];
      endpoints = runtime::endpoints(server.address, hosts);
      if (!endpoints.empty()) continue;
      const upstream::Server* old = server_of(before.get(), server.name);
      if (old != nullptr) endpoints = old->endpoints;
      const bool kept = !endpoints.empty();
      places.unresolved.push_back(
          {.pool = pool.name,
           .server = server.name,
           .index = i,
           .path = fmt::format("pools.{}.servers[{}].address", pool.name, i),
           .address = server.address.text,
           .kept = kept,
           .fatal = !kept && pool.resolve == config::Resolve::start});
    }
  }
  return places;
}

Result<Caches> open_caches(const config::Config& config, const Routing* running) {
  Caches caches;
  for (const config::Cache& wanted : config.caches) {
    const decltype(Caches::all) none;
    const auto& known = running != nullptr ? running->caches : none;
    const auto found =
        std::ranges::find(known, wanted.name, [](const auto& cache) { return cache->config.name; });
    if (found != known.end() && (*found)->config == wanted) {
      caches.all.push_back(*found);
      continue;
    }
    auto cache = cache_from(wanted);
    const bool stays = found != known.end() && (*found)->config.size == wanted.size &&
                       config::same_content((*found)->config, wanted) &&
                       wanted.max_object <= (*found)->store->largest();
    try {
      cache->store =
          stays ? (*found)->store : std::make_shared<cache::Store>(wanted.size, wanted.max_object);
    } catch (const std::bad_alloc&) {
      return Error(fmt::format("caches.{}.size: there is no range of {} bytes of memory",
                               wanted.name, wanted.size));
    }
    if (wanted.pool) {
      const bool known_purges = found != known.end() && same_shared_store((*found)->config, wanted);
      cache->purges = known_purges ? (*found)->purges : std::make_shared<cache::PurgeLog>();
    }
    caches.all.push_back(std::move(cache));
  }
  for (const config::Listener& listener : config.listeners)
    for (const config::Route& route : listener.routes)
      if (route.cache && !route.cache->empty()) caches.of_routes[route.pool].insert(*route.cache);
  return caches;
}

std::shared_ptr<const Routing> assemble(const Changes& changes, const Places& places,
                                        const Caches& caches, upstream::Directory& directory,
                                        const Routing* running,
                                        std::chrono::steady_clock::time_point now) {
  auto routing = std::make_shared<Routing>();
  routing->generation = running != nullptr ? running->generation + 1 : 1;
  for (const PoolChange& change : changes.pools)
    routing->pools.push_back(pool_from(change, places, caches, directory, now));
  routing->caches = caches.all;
  return routing;
}

std::shared_ptr<const Routing> with_places(const Routing& running, const Places& places) {
  auto routing = std::make_shared<Routing>(running);
  ++routing->generation;
  bool differs = false;
  for (auto& pool : routing->pools) {
    if (same_places(*pool, places)) continue;
    auto moved = std::make_shared<Pool>(*pool);
    for (upstream::Server& server : moved->servers)
      server.endpoints = places.endpoints.at({pool->config.name, server.config.name});
    pool = std::move(moved);
    differs = true;
  }
  if (!differs) return nullptr;
  return routing;
}

}  // namespace clockwise::runtime
