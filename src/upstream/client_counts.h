// Open connections by client address, over all workers: what limits.per_client is held against.
//
// Only asked where a limit is set, once for each connection that comes or goes. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace clockwise::upstream {

class ClientCounts {
 public:
  // One more connection of `address` (text, IPv4 for a mapped one); false where it has `limit`.
  [[nodiscard]] bool admit(std::string_view address, std::uint32_t limit) {
    const std::lock_guard lock(mutex_);
    auto found = counts_.find(address);
    // A tree, since clients choose their addresses: a hash table can be made slow from outside.
    if (found == counts_.end()) found = counts_.emplace(std::string(address), 0).first;
    if (found->second >= limit) return false;
    ++found->second;
    return true;
  }

  // REQUIRES: admitted before.
  void leave(std::string_view address) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(address);
    if (--found->second == 0) counts_.erase(found);
  }

  [[nodiscard]] std::size_t clients() const {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint32_t, std::less<>> counts_;
};

}  // namespace clockwise::upstream
