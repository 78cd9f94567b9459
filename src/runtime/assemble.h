// From a configuration to a routing snapshot, in steps that can each be refused before anything
// has changed: rings and what they would move, addresses, the finished Routing.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/model.h"
#include "runtime/resolver.h"
#include "upstream/directory.h"
#include "upstream/plan.h"
#include "upstream/routing.h"

namespace clockwise::runtime {

// A pool with its ring, and the change that it is.
struct PoolChange {
  const config::Pool* config = nullptr;
  std::shared_ptr<const upstream::Pool> running;  // null: the pool is new
  std::shared_ptr<const ring::Ring> ring;
  std::string digest;
  double build_seconds = 0;  // 0: the running ring serves on
  upstream::Report report;

  // Whether a guard forbids the change. A new pool has nothing to move.
  [[nodiscard]] bool refused() const noexcept {
    return running && report.refused_by != upstream::Guard::none;
  }
};

struct Changes {
  std::vector<PoolChange> pools;          // of the new configuration, sorted by name
  std::vector<upstream::Report> removed;  // pools that it no longer has
};

// Builds the ring of each pool, or takes over the running one where it is the same. `running` may
// be null. The error names the pool.
[[nodiscard]] Result<Changes> build_rings(const config::Config& config,
                                          const upstream::Routing* running);

// Every name that has to be looked up for the servers of `config`.
[[nodiscard]] std::set<std::string> host_names(const config::Config& config);

// Where each server is, by pool and name.
struct Places {
  std::map<std::pair<std::string, std::string>, std::vector<upstream::Endpoint>> endpoints;
  struct Unresolved {
    std::string pool, server;
    std::size_t index = 0;  // in the list
    std::string path;       // "pools.pages.servers[2].address"
    std::string address;    // as the user wrote it
    bool kept = false;      // it had addresses before, and keeps them
    bool fatal = false;     // it had none, and `resolve: start` does not let it wait
  };
  std::vector<Unresolved> unresolved;
};
[[nodiscard]] Places place_servers(const config::Config& config, const HostAddresses& hosts,
                                   const upstream::Routing* running);

// The caches of `config`: those that run, where nothing changed; the stores of those that run,
// where their size stays. The error names the cache that there is no memory for.
struct Caches {
  std::vector<std::shared_ptr<const upstream::Cache>> all;  // sorted by name
  std::map<std::string, std::set<std::string>> of_routes;   // names, by the pool that gets them
};
[[nodiscard]] Result<Caches> open_caches(const config::Config& config,
                                         const upstream::Routing* running);

// The snapshot. A pool in which nothing changed is the running one itself; a pool whose ring moved
// keys remembers the ring before until `now` + handoff.max_window.
[[nodiscard]] std::shared_ptr<const upstream::Routing> assemble(
    const Changes& changes, const Places& places, const Caches& caches,
    upstream::Directory& directory, const upstream::Routing* running,
    std::chrono::steady_clock::time_point now);

// The running snapshot with other addresses; null when nothing differs.
[[nodiscard]] std::shared_ptr<const upstream::Routing> with_places(const upstream::Routing& running,
                                                                   const Places& places);

}  // namespace clockwise::runtime
