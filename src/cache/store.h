// The store of a cache: answers in memory, one for all workers, never more than its size.
//
// Cut into shards by the hash of the key, each with a lock, an index, an arena and its own order of
// eviction. A hit takes the lock of its shard shared; what changes the index takes it alone, for a
// few steps. Bodies are read by reference and copied by nobody. The bound holds by construction:
// answers, keys, and what is still being fetched lie in the arenas, and index and ghosts are taken
// off their size.
//
// Any thread. Times are milliseconds of one clock that does not go back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/fill.h"
#include "cache/object.h"
#include "cache/purge.h"
#include "cache/vary.h"
#include "http/head.h"

namespace clockwise::cache {

// A request as the store sees it.
struct Wanted {
  std::uint64_t hash = 0;  // Store::hash() of the key
  std::string_view key;
  std::string_view octets;  // of the request's head, which `fields` count from
  std::span<const http::FieldLine> fields;
  bool may_fetch = true;  // for the store, where it finds nothing
};

// An answer that is to be stored, without its body. Views need not outlive the call.
struct Draft {
  std::uint16_t status = 200;
  std::string_view head;  // as Object::head()
  std::string_view tags;
  std::span<const Selector> selectors;
  Terms terms;
  std::uint64_t length = Fill::kUnknown;  // of the body, where it is declared
  bool found = false;  // not the origin's answer to this fetch: another store had it
};

enum class EvictionReason : std::uint8_t { size, expired, purged, invalidated };

// Upper bounds in seconds of the ages at which answers are evicted for others.
inline constexpr std::array<std::uint32_t, 8> kEvictionAges{1,    10,    60,    600,
                                                            3600, 21600, 86400, 604800};

struct Stats {
  std::uint64_t bytes = 0, limit = 0;  // held and at most, with all that the store itself needs
  std::uint64_t objects = 0;
  std::array<std::uint64_t, 4> evictions{};  // by EvictionReason
  std::uint64_t rejected = 0;                // not stored for lack of room
  std::array<std::uint64_t, kEvictionAges.size() + 1> eviction_ages{};  // not cumulative
  double eviction_age_sum = 0;
};

class Store {
 public:
  // `size` octets in all, made for answers of up to `max_object`. Throws std::bad_alloc where there
  // is no such range of addresses.
  Store(std::uint64_t size, std::uint64_t max_object);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // The largest body that can be stored.
  [[nodiscard]] std::uint64_t largest() const noexcept;
  [[nodiscard]] std::uint64_t hash(std::string_view key) const noexcept;

  // --- requests ---
  struct Found {
    ObjectRef object;   // the newest that fits, fresh or not
    bool pass = false;  // what answers this key cannot be shared, as was seen lately
    // But this caller has to fetch, alone, to see whether that is still so: one at a time.
    bool probe = false;
    bool other = false;  // answers to the same key are there, for other requests
  };
  [[nodiscard]] Found find(const Wanted& wanted, std::int64_t now_ms);

  // For a request that found nothing it can use: the fetch that it may wait for, or, when nobody
  // fetches yet, one of its own, which this caller must bring to an end.
  struct Joined {
    ObjectRef object;  // another than `found` came meanwhile: look at it first
    bool pass = false;
    std::shared_ptr<Fill> fill;
    bool leads = false;
  };
  // `alone`: nobody else may wait for it before its answer is known to be shared.
  [[nodiscard]] Joined join(const Wanted& wanted, const ObjectRef& found, bool alone,
                            std::int64_t now_ms);

  // --- the one who fetches ---
  // The head is here. False: there is no room; the fill is as before.
  [[nodiscard]] bool begin(Fill& fill, const Draft& draft, std::int64_t now_ms);
  // More of the body. Past `most` octets, or where there is no room, it passes through to those who
  // read it already and is not kept. False: not even that, the memory is short.
  [[nodiscard]] bool append(Fill& fill, std::string_view octets, std::uint64_t most,
                            std::int64_t now_ms);
  // The body is whole. `variants`: at most so many answers to one key. False: it is not kept, since
  // it was purged meanwhile or another came later.
  bool complete(Fill& fill, std::size_t variants);
  // The origin says that `old` is still right; `draft` has the head that it has now. False: as
  // above.
  bool confirm(Fill& fill, const ObjectRef& old, const Draft& draft, std::size_t variants,
               std::int64_t now_ms);
  // Another store had an answer that is stale: it is kept, offered to those who wait, and the fetch
  // goes on. Null: it is not kept, as above or for lack of room.
  [[nodiscard]] ObjectRef adopt(Fill& fill, const Draft& draft,
                                std::span<const std::string_view> body, std::size_t variants,
                                std::int64_t now_ms);
  // The answer cannot be shared, which is remembered for a while.
  void pass(Fill& fill, std::int64_t remember_ms, std::int64_t now_ms);
  // The answer stands somewhere else by now, where each who waits has it from: passed and found().
  void found_elsewhere(Fill& fill);
  void fail(Fill& fill, const Fill::Failure& failure);
  void cut(Fill& fill);

  // --- what is not to be used any more; how many answers it were ---
  std::size_t invalidate(std::string_view key);
  std::size_t purge(PurgeRule rule);

  // Lets go of what nobody can use any more, in a few buckets at each call.
  void sweep(std::int64_t now_ms);

  [[nodiscard]] Stats stats() const;

 private:
  [[nodiscard]] Shard& shard_of(std::uint64_t hash) noexcept;

  const std::uint64_t size_;
  const std::uint64_t seed_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<std::uint32_t> generation_{1};
  std::atomic<std::size_t> sweeping_{0};
};

}  // namespace clockwise::cache
