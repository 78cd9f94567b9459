#include "cache/store.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <random>

#include "cache/shard.h"

namespace clockwise::cache {
namespace {

// As many shards as workers seldom meet in, but each large enough for some of the largest answers.
constexpr std::uint64_t kMostShards = 16;
constexpr std::uint64_t kLargestPerShard = 4;

// What one object may cost at most, by the width of its account.
constexpr std::uint64_t kMostOfOne = std::uint64_t{2} << 30;

std::uint64_t shards_for(std::uint64_t size, std::uint64_t max_object) {
  const std::uint64_t least = std::max<std::uint64_t>(max_object * kLargestPerShard, 1 << 20);
  return std::bit_floor(std::clamp<std::uint64_t>(size / least, 1, kMostShards));
}

// Drawn at start, so that nobody outside can look for keys that share a bucket.
std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

Store::Store(std::uint64_t size, std::uint64_t max_object) : size_(size), seed_(random_seed()) {
  const std::uint64_t count = shards_for(size, max_object);
  for (std::uint64_t i = 0; i < count; ++i)
    shards_.push_back(std::make_unique<Shard>(size / count));
}

Store::~Store() = default;

std::uint64_t Store::largest() const noexcept {
  return std::min(shards_.front()->room() / 2, kMostOfOne);
}

std::uint64_t Store::hash(std::string_view key) const noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed_);
}

Shard& Store::shard_of(std::uint64_t hash) noexcept {
  return *shards_[hash & (shards_.size() - 1)];
}

Store::Found Store::find(const Wanted& wanted, std::int64_t now_ms) {
  return shard_of(wanted.hash).find(wanted, now_ms);
}

Store::Joined Store::join(const Wanted& wanted, const ObjectRef& found, bool alone,
                          std::int64_t now_ms) {
  return shard_of(wanted.hash)
      .join(wanted, found, alone, generation_.load(std::memory_order_relaxed), now_ms);
}

bool Store::begin(Fill& fill, const Draft& draft, std::int64_t now_ms) {
  return shard_of(fill.hash_).begin(fill, draft, now_ms);
}

bool Store::append(Fill& fill, std::string_view octets, std::uint64_t most, std::int64_t now_ms) {
  return shard_of(fill.hash_).append(fill, octets, std::min(most, largest()), now_ms);
}

bool Store::complete(Fill& fill, std::size_t variants) {
  return shard_of(fill.hash_).complete(fill, variants);
}

bool Store::confirm(Fill& fill, const ObjectRef& old, const Draft& draft, std::size_t variants,
                    std::int64_t now_ms) {
  return shard_of(fill.hash_).confirm(fill, old, draft, variants, now_ms);
}

ObjectRef Store::adopt(Fill& fill, const Draft& draft, std::span<const std::string_view> body,
                       std::size_t variants, std::int64_t now_ms) {
  Shard& shard = shard_of(fill.hash_);
  const std::shared_ptr<Fill> own = shard.beside(fill);
  bool whole = shard.begin(*own, draft, now_ms);
  for (const std::string_view piece : body)
    whole = whole && shard.append(*own, piece, largest(), now_ms);
  if (!whole) {
    shard.leave(*own);
    return {};
  }
  if (!shard.complete(*own, variants)) return {};
  ObjectRef object = own->object();
  fill.offer(object);
  return object;
}

void Store::pass(Fill& fill, std::int64_t remember_ms, std::int64_t now_ms) {
  shard_of(fill.hash_).pass(fill, remember_ms, now_ms);
  fill.become(Fill::State::passed);
}

void Store::found_elsewhere(Fill& fill) {
  shard_of(fill.hash_).leave(fill);
  fill.found_.store(true, std::memory_order_release);
  fill.become(Fill::State::passed);
}

void Store::fail(Fill& fill, const Fill::Failure& failure) {
  shard_of(fill.hash_).leave(fill);
  {
    const std::lock_guard lock(fill.mutex_);
    fill.failure_ = failure;
  }
  fill.become(Fill::State::failed);
}

void Store::cut(Fill& fill) {
  shard_of(fill.hash_).leave(fill);
  fill.become(Fill::State::cut);
}

std::size_t Store::invalidate(std::string_view key) {
  const std::uint64_t of_key = hash(key);
  return shard_of(of_key).invalidate(of_key, key);
}

std::size_t Store::purge(PurgeRule rule) {
  rule.generation = generation_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (rule.scope == PurgeScope::url) {
    const std::uint64_t of_key = hash(rule.text);
    return shard_of(of_key).purge_key(rule, of_key);
  }
  for (const auto& shard : shards_) shard->add_rule(rule);
  std::size_t count = 0;
  for (const auto& shard : shards_) count += shard->apply_rule(rule);
  return count;
}

void Store::sweep(std::int64_t now_ms) {
  const std::size_t turn = sweeping_.fetch_add(1, std::memory_order_relaxed);
  shards_[turn % shards_.size()]->sweep(turn / shards_.size(), now_ms);
}

Stats Store::stats() const {
  Stats stats;
  stats.limit = size_;
  for (const auto& shard : shards_) shard->add_to(stats);
  return stats;
}

}  // namespace clockwise::cache
