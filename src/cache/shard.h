// One shard of the store: index, arena, order of eviction, and the fetches under way.
#pragma once

#include <cstdint>
#include <memory>
#include <ranges>
#include <shared_mutex>
#include <span>
#include <vector>

#include "cache/arena.h"
#include "cache/eviction.h"
#include "cache/store.h"

namespace clockwise::cache {

class Shard {
 public:
  explicit Shard(std::uint64_t size);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  [[nodiscard]] std::uint64_t room() const noexcept { return arena_.size(); }

  // As in Store; each takes the lock.
  [[nodiscard]] Store::Found find(const Wanted& wanted, std::int64_t now_ms);
  [[nodiscard]] Store::Joined join(const Wanted& wanted, const ObjectRef& found, bool alone,
                                   std::uint32_t generation, std::int64_t now_ms);
  [[nodiscard]] bool begin(Fill& fill, const Draft& draft, std::int64_t now_ms);
  [[nodiscard]] bool append(Fill& fill, std::string_view octets, std::uint64_t most,
                            std::int64_t now_ms);
  bool complete(Fill& fill, std::size_t variants);
  bool confirm(Fill& fill, const ObjectRef& old, const Draft& draft, std::size_t variants,
               std::int64_t now_ms);
  void pass(Fill& fill, std::int64_t remember_ms, std::int64_t now_ms);
  void leave(Fill& fill);
  // A fill that nobody joins, for what is as old as this fetch.
  [[nodiscard]] std::shared_ptr<Fill> beside(const Fill& fill);
  std::size_t invalidate(std::uint64_t hash, std::string_view key);
  // The rule counts from here on, also for what is being fetched.
  void add_rule(const PurgeRule& rule);
  // Finds what it names, and forgets the rule; how many it were.
  std::size_t apply_rule(const PurgeRule& rule);
  // A rule that names one key.
  std::size_t purge_key(const PurgeRule& rule, std::uint64_t hash);
  void sweep(std::size_t turn, std::int64_t now_ms);
  void add_to(Stats& stats) const;

  void destroy(Object& object) noexcept;

 private:
  [[nodiscard]] Object*& bucket(std::uint64_t hash) noexcept {
    return buckets_[(hash >> 16) & (buckets_.size() - 1)];
  }
  [[nodiscard]] auto fills_of(std::uint64_t hash) {
    const auto [first, last] = fills_.equal_range(hash);
    return std::ranges::subrange(first, last);
  }
  template <class F>
  void each_of(std::uint64_t hash, std::string_view key, F f);
  [[nodiscard]] bool is_out(const Object& object) const noexcept;
  [[nodiscard]] static bool is_joinable(const Fill& fill) noexcept;
  [[nodiscard]] Store::Found find_locked(const Wanted& wanted, std::int64_t now_ms);
  [[nodiscard]] ObjectRef hold(Object& object) noexcept;

  [[nodiscard]] void* take(std::size_t size, std::uint64_t evictable, std::int64_t now_ms);
  [[nodiscard]] std::span<char> take_up_to(std::size_t size, std::size_t least,
                                           std::int64_t now_ms);
  [[nodiscard]] std::uint64_t evict_one(std::int64_t now_ms);
  [[nodiscard]] Object* make(const Fill& fill, const Draft& draft, std::uint32_t inline_size,
                             std::int64_t now_ms);
  [[nodiscard]] bool add_extent(Fill& fill, std::uint64_t size, std::uint64_t here,
                                std::int64_t now_ms);
  [[nodiscard]] bool add_passing_extent(Fill& fill);
  static void link(Fill& fill, Extent& extent, std::uint64_t size) noexcept;
  void pass_through(Fill& fill);
  void trim(Fill& fill);
  [[nodiscard]] bool is_outrun(const Fill& fill, const Object& object);
  [[nodiscard]] bool keep(Fill& fill, Object& object, std::uint64_t cost, std::size_t variants);
  [[nodiscard]] static std::uint64_t cost_of(const Object& object) noexcept;
  void insert(Object& object, std::uint64_t hash, std::uint64_t cost);
  void unlink(Object& object) noexcept;
  void remove(Object& object, EvictionReason reason) noexcept;
  void drop(Object& object) noexcept;
  void free(Object& object) noexcept;
  void free(Extent& extent) noexcept;
  void give_up(Fill& fill);
  void forget(Fill& fill) noexcept;
  std::size_t purge_bucket(Object* first, const PurgeRule& rule) noexcept;
  static void purge_fill(Fill& fill, const PurgeRule& rule);
  static void has_begun(Fill& fill, const Object& object);
  static void publish(Fill& fill, ObjectRef object, std::uint64_t length, Fill::State state);

  mutable std::shared_mutex mutex_;
  std::vector<Object*> buckets_;
  Eviction eviction_;
  Arena arena_;
  Fills fills_;
  std::vector<PurgeRule> rules_;  // under way; rarely any
  std::uint64_t objects_ = 0;
  Stats counted_;
};

}  // namespace clockwise::cache
