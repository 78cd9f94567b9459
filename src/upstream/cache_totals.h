// What is counted of a cache as a whole: sums over the pools that use it and over its stores, which
// go on where a pool or a store leaves off.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cache/purge.h"
#include "cache/store.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

enum class PurgeResult : std::uint8_t { ok, error };

// Purges that were asked for. Any thread.
class PurgeCounters {
 public:
  void add(cache::PurgeScope scope, PurgeResult result) noexcept {
    counts_[index(scope, result)].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get(cache::PurgeScope scope, PurgeResult result) const noexcept {
    return counts_[index(scope, result)].load(std::memory_order_relaxed);
  }

 private:
  static std::size_t index(cache::PurgeScope scope, PurgeResult result) noexcept {
    return static_cast<std::size_t>(scope) * 2 + static_cast<std::size_t>(result);
  }

  std::array<std::atomic<std::uint64_t>, 10> counts_{};
};

// What pools have counted at one cache.
struct CacheSums {
  std::array<std::uint64_t, 6> requests{};       // by metrics::CacheResult
  std::array<std::uint64_t, 3> revalidations{};  // by metrics::Revalidation
  std::uint64_t sent_from_store = 0, sent_from_origin = 0;

  void add(const CacheCounters& counters);
};

struct CacheTotals {
  CacheTotals(std::string cache_name, std::size_t workers)
      : cache(std::move(cache_name)), shared(std::make_shared<SharedCounters>(workers)) {}

  std::string cache;
  std::shared_ptr<SharedCounters> shared;
  std::shared_ptr<PurgeCounters> purges = std::make_shared<PurgeCounters>();
  CacheSums past_pools;      // those that left the cache and have no counters any more
  cache::Stats past_stores;  // those that it had before, what they counted

  // `counters`: of all pools that have any, at whatever cache.
  [[nodiscard]] CacheSums sums(
      std::span<const std::shared_ptr<const CacheCounters>> counters) const;
  // `store`: the one that it has; null: it was removed.
  [[nodiscard]] cache::Stats stats(const cache::Store* store) const;
  // The store leaves.
  void add_past(const cache::Store& store);
};

}  // namespace clockwise::upstream
