// The second store of a cache, as one worker uses it: a pool of memcached servers that other
// proxies keep their answers in as well (docs/cache.md).
//
// It is there to save work, so it may never make any: whatever is wrong with a server makes its
// items misses. Who is late several times in a row is not asked for a while, so that even a server
// that hangs costs few requests the time they may wait. One thread; outlives what uses it, and
// snapshots come and go.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store.h"
#include "metrics/cells.h"
#include "proxy/context.h"
#include "proxy/hedge.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

class SharedPurges;
class SharedWrite;

// What is known of a key, for who may write there: what stands under it can be replaced as long as
// nobody else did so.
struct SharedItem {
  std::string key;
  upstream::MemcachedServer* server = nullptr;  // that said so; null: nothing is known
  std::uint64_t unique = 0;
  // It is of no use to anybody: what this proxy has put there to say that it fetches, or no entry.
  bool useless = false;
};

class SharedStore {
 public:
  explicit SharedStore(Context& context);
  ~SharedStore();
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  // Of the newest snapshot; null: the cache has no second store there, and all is a miss.
  void configure(const upstream::CacheUse* use, PoolView* pool);
  void on_tick();
  void stop();
  // What was purged here is known there too, or cannot be told: nothing is lost by a stop.
  [[nodiscard]] bool purges_told() const;

  // --- for requests ---
  // An answer is to be had by others too.
  void write(std::unique_ptr<SharedWrite> write);
  // Of the entry that is found by `key`, as the cache has it.
  [[nodiscard]] std::string item_key(std::string_view key) const;
  // What `key` names is not to be used any more, for this reason.
  void remove(std::string_view key, cache::EvictionReason reason);
  // The same for URLs that were purged since. Before what is fetched anew may be written.
  void remove_purged();
  // Nobody needs to wait for it any more.
  void release(const SharedItem& item);

  // --- for look-ups and writes ---
  [[nodiscard]] Context& context() noexcept { return context_; }
  [[nodiscard]] metrics::SharedCells& cells() noexcept { return *cells_; }
  [[nodiscard]] const config::Cache& config() const noexcept { return cache_->config; }
  [[nodiscard]] const upstream::Cache& cache() const noexcept { return *cache_; }
  [[nodiscard]] HedgeClock& budgets() noexcept { return budgets_; }
  [[nodiscard]] HedgeClock& moments() noexcept { return moments_; }
  [[nodiscard]] bool open() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] PoolView& pool() noexcept { return *pool_; }  // REQUIRES: open()
  // The most octets that a value may have.
  [[nodiscard]] std::uint32_t largest_value() const noexcept;

  struct Target {
    upstream::MemcachedServer* server = nullptr;
    bool stands_in = false;
  };
  // Whom to ask for a key; nothing: nobody can be asked. REQUIRES: open().
  [[nodiscard]] std::optional<Target> target(std::string_view key);
  // A read: false where the server is away, or has been late too often.
  [[nodiscard]] bool ask(upstream::MemcachedCall& call, upstream::MemcachedServer& server,
                         std::string_view line);
  // How a read ended: in time, or not within the budget.
  void was_in_time(const upstream::MemcachedServer& server) { late_.erase(&server); }
  void was_late(const upstream::MemcachedServer& server);
  // What a command came to, for the counters of the pool.
  void count(metrics::MemcachedVerb verb, metrics::MemcachedResult result) noexcept;
  // So many octets are held for a look-up, or not any more. False: it would be too many.
  [[nodiscard]] bool hold(std::size_t octets) noexcept;
  void let_go(std::size_t octets) noexcept { held_ -= octets; }
  // A write has ended.
  void written(SharedWrite& write, metrics::SharedWrite result);
  // An item of so many octets is there for so many seconds.
  void account(std::uint64_t octets, cache::Seconds seconds);

 private:
  class Removal;
  struct Lateness {
    std::uint32_t in_a_row = 0;
    io::Milliseconds asked_again = 0;  // not before
  };
  struct Written {
    std::uint64_t octets = 0, objects = 0;
  };

  void remove_at(upstream::MemcachedServer& server, std::string_view key,
                 std::optional<cache::EvictionReason> reason);
  void forget_expired();

  Context& context_;
  HedgeClock budgets_, moments_;
  std::shared_ptr<const upstream::Cache> cache_;
  std::shared_ptr<upstream::SharedCounters> counters_;  // that cells_ are of
  metrics::SharedCells* cells_ = nullptr;
  std::string space_;  // begins the key of each entry
  PoolView* pool_ = nullptr;
  std::map<const upstream::MemcachedServer*, Lateness> late_;
  std::size_t held_ = 0;     // octets of look-ups
  std::size_t writing_ = 0;  // octets of writes
  std::vector<std::unique_ptr<SharedWrite>> writes_;
  std::map<std::int64_t, Written> written_;  // by when they are gone, in minutes of the loop
  std::unique_ptr<SharedPurges> purges_;     // of one worker only
};

}  // namespace clockwise::proxy
