// Work that may take seconds, on a thread of its own: one piece at a time, in the order in which
// they came, so that the thread which handed it over stays free.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <functional>

namespace clockwise::admin {

class Aside {
 public:
  // At most so many pieces at once, the one under way among them.
  static constexpr std::size_t kMost = 16;

  Aside() = default;
  // Waits for the piece under way; those that did not begin are dropped.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // Has `work` done, unless there is too much already: then false. Any thread. REQUIRES: `work`
  // throws nothing.
  [[nodiscard]] bool take(std::function<void()> work);

 private:
  std::atomic<std::size_t> pieces_{0};
  boost::asio::thread_pool thread_{1};
};

}  // namespace clockwise::admin
