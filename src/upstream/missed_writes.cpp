#include "upstream/missed_writes.h"

#include <utility>

namespace clockwise::upstream {

namespace {

constexpr std::size_t kOverhead = 64;  // of a node of the set, about

}  // namespace

void MissedWrites::add(std::string_view key) {
  const std::lock_guard lock(mutex_);
  add_locked(std::string(key));
}

void MissedWrites::add_all() {
  const std::lock_guard lock(mutex_);
  missed_ = {.keys = {}, .all = true};
  bytes_ = 0;
}

MissedWrites::Taken MissedWrites::take() {
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  return std::exchange(missed_, {});
}

void MissedWrites::put_back(Taken taken) {
  const std::lock_guard lock(mutex_);
  if (taken.all) {
    missed_ = std::move(taken);
    bytes_ = 0;
    return;
  }
  while (!taken.keys.empty()) add_locked(std::move(taken.keys.extract(taken.keys.begin()).value()));
}

void MissedWrites::add_locked(std::string key) {
  if (missed_.all) return;
  const std::size_t size = key.size() + kOverhead;
  if (!missed_.keys.insert(std::move(key)).second) return;
  bytes_ += size;
  if (bytes_ <= kMostBytes) return;
  missed_ = {.keys = {}, .all = true};
  bytes_ = 0;
}

}  // namespace clockwise::upstream
