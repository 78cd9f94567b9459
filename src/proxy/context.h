// What all sessions of one worker share, and what they see of the routing snapshot. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cache/policy.h"
#include "http/date.h"
#include "http/head.h"
#include "http/rewrite.h"
#include "io/loop.h"
#include "proxy/access_log.h"
#include "proxy/admission.h"
#include "proxy/backfills.h"
#include "proxy/budget.h"
#include "proxy/client.h"
#include "proxy/hedge.h"
#include "proxy/latencies.h"
#include "proxy/outbox.h"
#include "upstream/connections.h"
#include "upstream/memcached_server.h"
#include "upstream/routing.h"

namespace clockwise::proxy {

class Exchange;
class MemcachedCommand;
class ReplicaWrite;
class Session;
class SharedStore;

// What a worker keeps of a pool from one snapshot to the next, as long as it runs.
struct PoolMemory {
  explicit PoolMemory(io::Loop& loop) : hedge_clock(loop) {}

  Budget retries{10, 1};
  Budget hedges{1, 0};
  Latencies latencies;  // only while the pool hedges by a quantile
  HedgeClock hedge_clock;
};

// A pool of the snapshot, with this worker's connections to its servers.
struct PoolView {
  std::shared_ptr<const upstream::Pool> pool;
  std::vector<upstream::ServerConnections*> servers;  // by ServerIndex
  std::vector<upstream::MemcachedServer*> memcached;  // instead, where the pool speaks it
  PoolView* fallback = nullptr;                       // of the same snapshot; null: none
  metrics::PoolCells* cells = nullptr;
  upstream::CacheUse cache;                            // none: nothing is kept
  metrics::CacheCells* cache_cells = nullptr;          // null: the same
  SharedStore* shared = nullptr;                       // of the cache; null: it has none
  metrics::MemcachedCells* memcached_cells = nullptr;  // of a pool of memcached
  std::uint32_t largest_item = 1U << 20;               // that all its servers take
  upstream::RecentRequests* recent = nullptr;
  PoolMemory* memory = nullptr;
  io::Milliseconds watch_until = 0;  // requests moved by the newest change are counted so long
  std::uint32_t users = 0;  // exchanges that started here; a replaced view lives until they end
};

// Sixteen hex digits drawn at start and sixteen that count: unique, cheap, and not a secret.
class RequestIds {
 public:
  static constexpr std::size_t kSize = 32;

  explicit RequestIds(std::uint64_t seed) noexcept { write(text_.data(), seed); }
  [[nodiscard]] std::string_view next() noexcept {
    write(text_.data() + 16, ++count_);
    return {text_.data(), text_.size()};
  }

 private:
  static void write(char* to, std::uint64_t value) noexcept {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (int i = 15; i >= 0; --i, value >>= 4) to[i] = kDigits[value & 15];
  }

  std::array<char, kSize> text_;
  std::uint64_t count_ = 0;
};

class Context {
 public:
  Context(std::size_t worker_index, std::shared_ptr<const Admission> shared, std::uint64_t seed);
  ~Context();

  io::Slabs sessions, memcached_sessions;
  io::Loop loop;
  const std::size_t worker;
  const std::uint64_t started_ns = loop.now_ns();
  std::shared_ptr<AccessLog> log;  // null: off
  const std::shared_ptr<const Admission> admission;
  RequestIds request_ids;

  // Octets that the clients of memcached listeners make this worker hold.
  std::size_t memcached_held = 0;
  // Of them those that wait until the others hold less.
  boost::intrusive::list<IdleLink, boost::intrusive::constant_time_size<false>> memcached_waiting;

  Backfills backfills{*this};

  io::Milliseconds binary_told_again_at = 0;

  // Scratch of the event being handled: nothing here survives it.
  http::RequestHead request;
  http::ResponseHead response;
  http::Gather gather;
  Pieces pieces;
  std::string text;
  std::string key;
  cache::Asked asked;

  // Exchanges are recycled with the memory they hold.
  [[nodiscard]] Exchange& take_exchange();
  void give_back(Exchange& exchange);
  [[nodiscard]] MemcachedCommand& take_command();
  void give_back(MemcachedCommand& command);
  [[nodiscard]] ReplicaWrite& take_write();
  void give_back(ReplicaWrite& write);
  // Whoever waits among memcached_waiting looks again.
  void resume_memcached();

  // Where chance spreads what would else happen at once; no secret.
  [[nodiscard]] std::uint64_t random() noexcept { return random_(); }

  // The Date of this second (RFC 9110 6.6.1).
  [[nodiscard]] std::string_view date();

 private:
  std::vector<std::unique_ptr<Exchange>> free_;
  std::vector<std::unique_ptr<MemcachedCommand>> free_commands_;
  std::vector<std::unique_ptr<ReplicaWrite>> free_writes_;
  std::mt19937_64 random_;
  std::time_t date_second_ = 0;
  http::Date date_{0};
};

}  // namespace clockwise::proxy
