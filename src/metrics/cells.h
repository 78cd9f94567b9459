// Counters as the request path writes them: one cell per worker, no lock, no shared cache line.
//
// A cell has one writer, the worker that owns it; anyone may read at any time. A relaxed load and a
// relaxed store are a plain add on every machine we build for, and free of data races.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace clockwise::metrics {

class Cell {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void sub(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Upper bounds in nanoseconds; one more bucket stands for +Inf.
inline constexpr std::array<std::uint64_t, 10> kBackendBuckets{
    1'000'000,  2'500'000,   5'000'000,   10'000'000,    25'000'000,
    50'000'000, 100'000'000, 250'000'000, 1'000'000'000, 5'000'000'000};
inline constexpr std::array<std::uint64_t, 16> kClientBuckets{
    250'000,       500'000,       1'000'000,      2'500'000,     5'000'000,   10'000'000,
    25'000'000,    50'000'000,    100'000'000,    250'000'000,   500'000'000, 1'000'000'000,
    2'500'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000};
// Loop delay and durations of rare work, in nanoseconds.
inline constexpr std::array<std::uint64_t, 8> kDelayBuckets{
    100'000, 500'000, 1'000'000, 5'000'000, 10'000'000, 50'000'000, 100'000'000, 1'000'000'000};

template <std::size_t N, const std::array<std::uint64_t, N>& Bounds>
struct HistogramCells {
  std::array<Cell, N + 1> buckets;  // not cumulative
  Cell sum_ns;

  void observe(std::uint64_t ns) noexcept {
    std::size_t i = 0;
    while (i < N && ns > Bounds[i]) ++i;
    buckets[i].add();
    sum_ns.add(ns);
  }
};

enum class Code : std::uint8_t { c2xx, c3xx, c4xx, c5xx, other };  // other: error or aborted
enum class BackendError : std::uint8_t { resolve, connect, tls, timeout, reset, protocol };
enum class Routed : std::uint8_t { home, failover, overflow, hot, drain, ramp };
enum class RetryReason : std::uint8_t { connect, reset, timeout, status, stale_connection };
enum class RetrySuppressed : std::uint8_t { budget, unsafe_method, body_sent, no_candidate };
enum class Hedged : std::uint8_t { won, lost, cancelled };
enum class QueueRejected : std::uint8_t { full, timeout };
enum class RequestError : std::uint8_t {
  malformed,
  framing,
  header_too_large,
  uri_too_long,
  body_too_large,
  timeout,
  method,
  no_backend
};
enum class Rejected : std::uint8_t { limit, memory, tls, shutdown };

[[nodiscard]] constexpr Code code_of(unsigned status) noexcept {
  return status >= 200 && status < 600 ? static_cast<Code>(status / 100 - 2) : Code::other;
}

// The cell of one value of a label.
template <class Cells, class Enum>
[[nodiscard]] constexpr auto& at(Cells& cells, Enum which) noexcept {
  return cells[static_cast<std::size_t>(which)];
}

// One server of a pool (catalogue section 6).
struct alignas(64) BackendCells {
  std::array<Cell, 5> requests;  // by Code; other = no complete answer
  std::array<Cell, 6> errors;    // by BackendError
  Cell sent_bytes, received_bytes, connections_opened;
  Cell failures;  // attempts that failed in a way that tells something about the server
  Cell in_flight, connections_active, connections_idle;  // gauges
  Cell waiting;                                          // gauge: requests for a connection
  std::array<Cell, 2> queue_rejected;                    // by QueueRejected
  HistogramCells<10, kBackendBuckets> duration;          // dispatch to last byte of the answer

  // An attempt in flight is over; only one with an answer has a duration.
  void attempt_ended(Code code, std::uint64_t ns) noexcept {
    in_flight.sub();
    at(requests, code).add();
    if (code != Code::other) duration.observe(ns);
  }
};

// One pool (sections 4 and 5).
struct alignas(64) PoolCells {
  std::array<Cell, 6> routed;              // by Routed
  std::array<Cell, 5> retries;             // by RetryReason
  std::array<Cell, 4> retries_suppressed;  // by RetrySuppressed
  std::array<Cell, 3> hedges;              // by Hedged
  Cell remapped_requests;                  // since start, all swaps
};

enum class CacheResult : std::uint8_t { hit, stale, revalidated, miss, collapsed, bypass };
enum class CacheFetch : std::uint8_t { miss, revalidate, background, prefetch };
enum class Revalidation : std::uint8_t { not_modified, replaced, failed };

// One pool with a cache (section 9).
struct alignas(64) CacheCells {
  std::array<Cell, 6> requests;            // by CacheResult
  std::array<Cell, 4> fetches;             // by CacheFetch
  std::array<Cell, 3> revalidations;       // by Revalidation
  Cell sent_from_store, sent_from_origin;  // octets of bodies
  Cell waiting;                            // gauge: requests for another one's fetch
};

enum class SharedLookup : std::uint8_t { hit, stale, miss, late, error };
enum class SharedWrite : std::uint8_t { stored, outdated, too_large, busy, error };

// One cache with a second store (section 9).
struct alignas(64) SharedCells {
  std::array<Cell, 5> lookups;    // by SharedLookup
  std::array<Cell, 5> writes;     // by SharedWrite
  Cell bytes, objects;            // gauges: written and not known to be gone
  std::array<Cell, 4> evictions;  // by cache::EvictionReason
};

enum class MemcachedVerb : std::uint8_t {
  get,
  set,  // cas and ms too
  add,
  replace,
  append,  // prepend too
  incr,    // decr and ma too
  remove,
  touch
};
enum class MemcachedResult : std::uint8_t { hit, miss, stored, not_stored, error };
enum class Backfill : std::uint8_t { copied, present, outdated, skipped, error };

// One pool of memcached servers (section 11).
struct alignas(64) MemcachedCells {
  std::array<std::array<Cell, 5>, 8> commands;  // by MemcachedVerb and MemcachedResult; by key
  std::array<Cell, 5> backfills;                // by Backfill
  Cell keys_digested;
};

// One listener (section 8).
struct alignas(64) ListenerCells {
  std::array<Cell, 5> requests;        // by Code; other = aborted
  std::array<Cell, 8> request_errors;  // by RequestError
  std::array<Cell, 4> rejected;        // by Rejected
  Cell accepted, received_bytes, sent_bytes;
  Cell in_flight, connections_active, connections_idle;  // gauges
  HistogramCells<16, kClientBuckets> duration;           // first byte in to last byte out
};

// One worker (section 1).
struct alignas(64) WorkerCells {
  Cell busy_ns;
  HistogramCells<8, kDelayBuckets> loop_delay;
  Cell log_dropped;
};

// A T for each worker, never on one cache line. Sized once for the most workers there can be.
template <class T>
class PerWorker {
 public:
  explicit PerWorker(std::size_t workers)
      : cells_(std::make_unique<T[]>(workers)), workers_(workers) {}

  [[nodiscard]] T& at(std::size_t worker) noexcept { return cells_[worker]; }
  [[nodiscard]] std::span<const T> all() const noexcept { return {cells_.get(), workers_}; }

  // Sum of one cell over all workers: sum([](const T& t) { return t.sent_bytes.get(); }).
  template <class Get>
  [[nodiscard]] std::uint64_t sum(Get get) const {
    std::uint64_t total = 0;
    for (const T& t : all()) total += get(t);
    return total;
  }

 private:
  std::unique_ptr<T[]> cells_;
  std::size_t workers_;
};

}  // namespace clockwise::metrics
