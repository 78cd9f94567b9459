// The keys whose writes a memcached server has missed: what it still holds under them is old.
//
// Kept only where `memcached.on_return` is distrust, and only while a server is away, so that it
// costs nothing while all is well. Before the server is asked again these keys are deleted on it;
// where there were too many to remember, all of its items are (docs/adr/0006). Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace clockwise::upstream {

class MissedWrites {
 public:
  // Of memory for keys, each server; past it, all that the server holds counts as old.
  static constexpr std::size_t kMostBytes = 4U << 20;

  void add(std::string_view key);
  void add_all();

  struct Taken {
    std::unordered_set<std::string> keys;
    bool all = false;  // there were too many
    [[nodiscard]] bool none() const noexcept { return keys.empty() && !all; }
  };
  // What is known now; it is forgotten here.
  [[nodiscard]] Taken take();
  // They could not be deleted after all.
  void put_back(Taken taken);

 private:
  void add_locked(std::string key);

  std::mutex mutex_;
  Taken missed_;
  std::size_t bytes_ = 0;
};

}  // namespace clockwise::upstream
