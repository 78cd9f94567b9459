#include "upstream/cache_totals.h"

#include "cache/store.h"

namespace clockwise::upstream {

namespace {

template <class Array>
void add_each(const Array& from, Array& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

void add_counters(const cache::Stats& from, cache::Stats& to) {
  add_each(from.evictions, to.evictions);
  to.rejected += from.rejected;
  add_each(from.eviction_ages, to.eviction_ages);
  to.eviction_age_sum += from.eviction_age_sum;
}

}  // namespace

void CacheSums::add(const CacheCounters& counters) {
  for (const metrics::CacheCells& cells : counters.cells.all()) {
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i] += cells.requests[i].get();
    for (std::size_t i = 0; i < revalidations.size(); ++i)
      revalidations[i] += cells.revalidations[i].get();
    sent_from_store += cells.sent_from_store.get();
    sent_from_origin += cells.sent_from_origin.get();
  }
}

CacheSums CacheTotals::sums(std::span<const std::shared_ptr<const CacheCounters>> counters) const {
  CacheSums sums = past_pools;
  for (const auto& one : counters)
    if (one->cache == cache) sums.add(*one);
  return sums;
}

cache::Stats CacheTotals::stats(const cache::Store* store) const {
  if (store == nullptr) return past_stores;
  cache::Stats stats = store->stats();
  add_counters(past_stores, stats);
  return stats;
}

void CacheTotals::add_past(const cache::Store& store) { add_counters(store.stats(), past_stores); }

}  // namespace clockwise::upstream
