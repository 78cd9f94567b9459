#include "upstream/recent.h"

#include <algorithm>
#include <chrono>

namespace clockwise::upstream {

SteadyMs steady_now() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<SteadyMs>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

RecentRequests::Entries& RecentRequests::make() {
  auto* const entries = new Entries;
  entries_.store(entries, std::memory_order_release);
  return *entries;
}

std::vector<RecentRequest> RecentRequests::list() const {
  std::vector<RecentRequest> found;
  const Entries* const entries = entries_.load(std::memory_order_acquire);
  if (entries == nullptr) return found;
  const std::uint64_t count = count_.get();
  for (std::uint64_t i = count - std::min<std::uint64_t>(count, kKept); i < count; ++i) {
    const Entry& entry = (*entries)[i % kKept];
    const SteadyMs fact = entry.fact.load(std::memory_order_relaxed);
    found.push_back({.position = entry.position.load(std::memory_order_relaxed),
                     .at = fact >> 2,
                     .answer = static_cast<http::CacheAnswer>(fact & 3)});
  }
  return found;
}

}  // namespace clockwise::upstream
