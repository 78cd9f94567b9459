// What this proxy knows of purges of a cache whose answers others share: the list of them, and what
// unsafe requests have made doubtful in the last moments.
//
// Any thread. Times are milliseconds since 1970.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cache/entry.h"
#include "cache/purge_list.h"

namespace clockwise::cache {

class PurgeLog {
 public:
  PurgeLog() : list_(std::make_shared<const PurgeList>()) {}

  // Counts from its return on.
  void add(const PurgeRule& rule, std::int64_t now_ms);
  // An unsafe request has changed what `key` names: what was asked for before is not used, as long
  // as it may take to delete it from the shared store.
  void invalidate(std::string_view key, std::int64_t now_ms);
  // Returns what was not known here.
  [[nodiscard]] std::vector<PurgeList::Rule> merge(const PurgeList& other);

  [[nodiscard]] std::shared_ptr<const PurgeList> list() const;
  // Grows with each change of the list.
  [[nodiscard]] std::uint64_t changes() const noexcept {
    return changes_.load(std::memory_order_acquire);
  }
  [[nodiscard]] PurgeList::Effect on(const Entry& entry, std::int64_t now_ms) const;

  // The keys of purged URLs that nobody has taken yet, to be deleted from the shared store before
  // anything that was fetched since is written there.
  [[nodiscard]] bool has_keys() const noexcept { return has_keys_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<std::string> take_keys();

 private:
  static constexpr std::int64_t kDoubtful = 2'000;

  mutable std::mutex mutex_;  // the rest, but for what is atomic
  std::shared_ptr<const PurgeList> list_;
  std::vector<std::string> keys_;
  std::atomic<bool> has_keys_{false};
  std::deque<std::pair<std::int64_t, std::string>> doubtful_;  // by time
  std::atomic<std::int64_t> last_doubt_ms_{0};
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace clockwise::cache
