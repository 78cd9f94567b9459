#include "cache/purge_log.h"

#include <algorithm>

namespace clockwise::cache {
namespace {

// More that are to be deleted one by one are none of one's own making; the list tells of them.
constexpr std::size_t kMostKeys = 100'000;

}  // namespace

void PurgeLog::add(const PurgeRule& rule, std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  auto list = std::make_shared<PurgeList>(*list_);
  list->add(rule, now_ms);
  list_ = std::move(list);
  if (rule.scope == PurgeScope::url && !rule.soft && keys_.size() < kMostKeys) {
    keys_.push_back(rule.text);
    has_keys_.store(true, std::memory_order_release);
  }
  changes_.fetch_add(1, std::memory_order_release);
}

void PurgeLog::invalidate(std::string_view key, std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  while (!doubtful_.empty() && doubtful_.front().first + kDoubtful < now_ms) doubtful_.pop_front();
  doubtful_.emplace_back(now_ms, key);
  last_doubt_ms_.store(now_ms, std::memory_order_release);
}

std::vector<PurgeList::Rule> PurgeLog::merge(const PurgeList& other) {
  const std::lock_guard lock(mutex_);
  auto list = std::make_shared<PurgeList>(*list_);
  auto fresh = list->merge(other);
  if (list->pack() == list_->pack()) return fresh;
  list_ = std::move(list);
  changes_.fetch_add(1, std::memory_order_release);
  return fresh;
}

std::shared_ptr<const PurgeList> PurgeLog::list() const {
  const std::lock_guard lock(mutex_);
  return list_;
}

PurgeList::Effect PurgeLog::on(const Entry& entry, std::int64_t now_ms) const {
  if (last_doubt_ms_.load(std::memory_order_acquire) + kDoubtful >= now_ms) {
    const std::lock_guard lock(mutex_);
    const bool doubtful = std::ranges::any_of(doubtful_, [&](const auto& one) {
      return entry.asked_ms <= one.first && entry.key == one.second;
    });
    if (doubtful) return PurgeList::Effect::gone;
  }
  return list()->on(entry.key, entry.tags, entry.asked_ms);
}

std::vector<std::string> PurgeLog::take_keys() {
  const std::lock_guard lock(mutex_);
  has_keys_.store(false, std::memory_order_relaxed);
  return std::exchange(keys_, {});
}

}  // namespace clockwise::cache
