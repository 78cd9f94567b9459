// The routing snapshot: for each pool its ring, its servers and where they are.
//
// Built by the control thread at start and at each reload, then published as a whole: workers take
// the new one between two requests and never see half a change. Everything reachable from a Routing
// is immutable, except counters, which are atomic cells.
#pragma once

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/policy.h"
#include "config/model.h"
#include "http/key_template.h"
#include "metrics/cells.h"
#include "ring/ring.h"
#include "upstream/health_board.h"
#include "upstream/missed_writes.h"
#include "upstream/recent.h"

namespace clockwise::cache {
class PurgeLog;
class Store;
}  // namespace clockwise::cache

namespace clockwise::upstream {

using Endpoint = boost::asio::generic::stream_protocol::endpoint;

// The counters of one server, identified by pool and name. They outlive reloads, address changes
// and (for the grace time) the server's removal.
struct Backend {
  Backend(std::string pool_name, std::string server_name, std::size_t workers)
      : pool(std::move(pool_name)), name(std::move(server_name)), cells(workers) {}

  const std::string pool;
  const std::string name;
  metrics::PerWorker<metrics::BackendCells> cells;
  std::atomic<std::uint64_t> resolve_errors{0};  // counted by the control thread

  // Connections of all workers, for `connections.max`. Written when one opens or closes and when a
  // request has to wait, which a busy proxy does rarely; read on every loan of a limited server.
  struct alignas(64) Shared {
    std::atomic<std::uint32_t> open{0};
    std::atomic<std::uint32_t> waiting{0};     // requests
    std::atomic<std::uint32_t> contenders{0};  // workers that have one, or wait
  } shared;
  HealthCounters health;

  // Of a memcached server.
  struct {
    std::atomic<std::uint32_t> item_size_max{1U << 20};  // as it said last
    std::atomic<std::uint32_t> version{0};               // the same; 10 bits for each number
    std::atomic<std::uint64_t> probe_due_ms{0};          // while it is away; steady time
    MissedWrites missed;
  } memcached;
};

struct Server {
  config::Server config;
  std::vector<Endpoint> endpoints;  // resolved; empty: cannot be reached now (resolve: lazy)
  std::shared_ptr<Backend> backend;
  std::shared_ptr<HealthMark> health;
};

struct PoolCounters {
  PoolCounters(std::string pool_name, std::size_t workers)
      : name(std::move(pool_name)), cells(workers), memcached(workers) {}
  const std::string name;
  metrics::PerWorker<metrics::PoolCells> cells;
  metrics::PerWorker<metrics::MemcachedCells> memcached;

  // It has counted there: it spoke memcached once.
  [[nodiscard]] bool memcached_used() const noexcept {
    return memcached.sum([](const metrics::MemcachedCells& one) {
      std::uint64_t sum = one.keys_digested.get();
      for (const auto& results : one.commands)
        for (const metrics::Cell& cell : results) sum += cell.get();
      return sum;
    }) > 0;
  }
};

// What the second store of a cache has counted, whichever pool used it.
using SharedCounters = metrics::PerWorker<metrics::SharedCells>;

// What one pool has counted at one cache.
struct CacheCounters {
  CacheCounters(std::string pool_name, std::string cache_name, std::size_t workers,
                std::shared_ptr<SharedCounters> of_cache)
      : pool(std::move(pool_name)),
        cache(std::move(cache_name)),
        cells(workers),
        shared(std::move(of_cache)) {}
  const std::string pool, cache;
  metrics::PerWorker<metrics::CacheCells> cells;
  const std::shared_ptr<SharedCounters> shared;
};

// A cache as the pools use it. The store outlives every reload that leaves its size alone, and what
// is known of purges every reload that leaves the second store where it is.
struct Cache {
  config::Cache config;
  cache::Settings policy;
  http::KeyTemplate key;
  std::vector<std::string_view> targeted;  // of `config`, the first valid one rules
  std::shared_ptr<cache::Store> store;
  std::shared_ptr<cache::PurgeLog> purges;  // null: there is no second store
};

// A cache as one pool uses it.
struct CacheUse {
  std::shared_ptr<const Cache> cache;  // null: none
  std::shared_ptr<CacheCounters> counters;

  friend bool operator==(const CacheUse&, const CacheUse&) = default;
};

// The ring before the newest change of a pool, kept for a while so that real requests whose owner
// the change moved can be counted.
struct RemapWatch {
  explicit RemapWatch(std::size_t workers) : requests(workers) {}

  std::shared_ptr<const ring::Ring> previous;
  // The change left alone what a key is and how it is hashed: positions mean the same before and
  // after. Otherwise only a key tells who owned it.
  bool same_positions = true;
  http::KeyTemplate previous_key;
  // previous server index -> index in the new list, or kGone.
  std::vector<ring::ServerIndex> now;
  std::vector<std::string> names;  // by previous server index
  static constexpr ring::ServerIndex kGone = ~ring::ServerIndex{0};
  std::chrono::steady_clock::time_point until;
  struct alignas(64) Count {
    metrics::Cell cell;
  };
  metrics::PerWorker<Count> requests;  // by worker
};

struct Pool {
  config::Pool config;
  http::KeyTemplate key;                   // of config.ring
  std::shared_ptr<const ring::Ring> ring;  // ServerIndex = index in `servers`
  std::string digest;                      // 16 hex digits, see upstream/digest.h
  std::vector<Server> servers;             // in the order of the list
  std::shared_ptr<PoolCounters> counters;
  std::shared_ptr<HealthBoard> health;
  std::shared_ptr<Recent> recent;     // what it was asked for lately
  std::shared_ptr<RemapWatch> watch;  // null: no change within the window
  CacheUse cache;
  std::vector<CacheUse> route_caches;  // that routes give it in the place of its own
};

struct Routing {
  std::uint64_t generation = 0;
  std::vector<std::shared_ptr<const Pool>> pools;    // sorted by name
  std::vector<std::shared_ptr<const Cache>> caches;  // the same

  [[nodiscard]] const Pool* pool(std::string_view name) const noexcept {
    for (const auto& p : pools)
      if (p->config.name == name) return p.get();
    return nullptr;
  }
};

}  // namespace clockwise::upstream
