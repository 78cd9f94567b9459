#include "cache/fill.h"

#include <algorithm>

namespace clockwise::cache {

ObjectRef Fill::object() const {
  const std::lock_guard lock(mutex_);
  return object_;
}

ObjectRef Fill::stale() const {
  const std::lock_guard lock(mutex_);
  return stale_;
}

// Who waits is woken to look at it.
void Fill::offer(ObjectRef stale) {
  const std::lock_guard lock(mutex_);
  stale_ = std::move(stale);
  for (Follower* follower : followers_)
    if (std::exchange(follower->waits_, false)) follower->wake();
}

Fill::Failure Fill::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Fill::follow(Follower& follower, std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (passing_ || followers_.size() >= most) return false;
  follower.waits_ = false;
  follower.seen_ = 0;
  followers_.push_back(&follower);
  return true;
}

bool Fill::wait(Follower& follower, State state, std::uint64_t seen) {
  const std::lock_guard lock(mutex_);
  follower.seen_ = seen;
  if (paused_ && fetcher_ != nullptr) {
    paused_ = false;
    fetcher_->nudge();
  }
  if (state_.load(std::memory_order_relaxed) != state) return false;
  if (object_ && object_->size() > seen) return false;
  follower.waits_ = true;
  return true;
}

void Fill::unfollow(Follower& follower) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(followers_, &follower);
  follower.waits_ = false;
  if ((followers_.empty() || paused_) && fetcher_ != nullptr) {
    paused_ = false;
    fetcher_->nudge();
  }
}

void Fill::fetched_by(Fetcher* fetcher) noexcept {
  const std::lock_guard lock(mutex_);
  fetcher_ = fetcher;
}

std::size_t Fill::followers() const {
  const std::lock_guard lock(mutex_);
  return followers_.size();
}

bool Fill::may_go_on() {
  const std::lock_guard lock(mutex_);
  if (!passing_ || followers_.empty()) return true;
  paused_ = object_->size() > slowest() + kWindow;
  return !paused_;
}

std::uint64_t Fill::slowest() const noexcept {
  std::uint64_t least = kUnknown;
  for (const Follower* follower : followers_) least = std::min(least, follower->seen_);
  return least;
}

void Fill::become(State state) noexcept {
  const std::lock_guard lock(mutex_);
  state_.store(state, std::memory_order_release);
  for (Follower* follower : followers_)
    if (std::exchange(follower->waits_, false)) follower->wake();
}

void Fill::grown() noexcept {
  const std::lock_guard lock(mutex_);
  for (Follower* follower : followers_)
    if (std::exchange(follower->waits_, false)) follower->wake();
}

}  // namespace clockwise::cache
