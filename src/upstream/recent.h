// The latest requests of a pool: what they were hashed to, when, and whether a cache answered.
//
// Each worker keeps its own, so the request path writes two words and no other worker's cache line.
// Anyone may read at any time; a request that is being written while it is read may show the
// position of one and the time of another, which no figure made of thousands can tell.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "http/cache_answer.h"
#include "metrics/cells.h"
#include "ring/ring.h"

namespace clockwise::upstream {

using SteadyMs = std::uint64_t;  // milliseconds of the steady clock

[[nodiscard]] SteadyMs steady_now() noexcept;

struct RecentRequest {
  ring::Position position = 0;
  SteadyMs at = 0;
  http::CacheAnswer answer = http::CacheAnswer::unknown;
};

// Those of one worker; memory is taken with the first request.
class alignas(64) RecentRequests {
 public:
  static constexpr std::size_t kKept = 4096;

  RecentRequests() = default;
  ~RecentRequests() { delete entries_.load(std::memory_order_relaxed); }
  RecentRequests(const RecentRequests&) = delete;
  RecentRequests& operator=(const RecentRequests&) = delete;

  // The owning worker only.
  void add(const RecentRequest& request) {
    Entries* entries = entries_.load(std::memory_order_relaxed);
    if (entries == nullptr) [[unlikely]]
      entries = &make();
    Entry& entry = (*entries)[count_.get() % kKept];
    entry.position.store(request.position, std::memory_order_relaxed);
    entry.fact.store(request.at << 2 | static_cast<SteadyMs>(request.answer),
                     std::memory_order_relaxed);
    count_.add();
  }

  // The latest requests, at most kKept, the oldest first. Any thread.
  [[nodiscard]] std::vector<RecentRequest> list() const;

 private:
  struct Entry {
    std::atomic<ring::Position> position{0};
    std::atomic<SteadyMs> fact{0};
  };
  using Entries = std::array<Entry, kKept>;

  Entries& make();

  std::atomic<Entries*> entries_{nullptr};
  metrics::Cell count_;  // all that were ever added
};

// Those of a pool, by worker. It lives from one snapshot to the next as long as positions mean the
// same (upstream/pool_key.h).
struct Recent {
  explicit Recent(std::size_t workers) : since(steady_now()), by_worker(workers) {}

  const SteadyMs since;
  metrics::PerWorker<RecentRequests> by_worker;
};

}  // namespace clockwise::upstream
