// Whether memory runs short: looks at the resident memory of the process ten times a second and
// tells the workers, who then turn new work away until it is better (`overload.memory`). And gives
// back to the system what the allocator keeps after a rush.
//
// Off the path of requests; one thread, that of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/model.h"
#include "proxy/admission.h"

namespace clockwise::runtime {

// The text of a file, or nothing.
using TextReader = std::function<std::optional<std::string>(const std::string& path)>;

// The smallest memory limit, in bytes, of the control groups that this process is in (version 1 or
// 2, also seen from inside of a container); nothing where there is none.
[[nodiscard]] std::optional<std::uint64_t> memory_limit_of_group(const TextReader& read);

// Resident bytes above which new work is turned away; nothing: never.
[[nodiscard]] std::optional<std::uint64_t> memory_threshold(const config::Overload& overload,
                                                            const TextReader& read);

[[nodiscard]] std::optional<std::string> read_text(const std::string& path);

// Is memory short, given what it was before? It must fall clearly below the threshold to be enough
// again, or every answer would change the state.
[[nodiscard]] bool memory_is_short(std::uint64_t resident, std::uint64_t threshold, bool was_short);

class MemoryWatch {
 public:
  MemoryWatch(boost::asio::io_context& io, std::shared_ptr<proxy::Admission> admission);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // From now on by these settings; the first call begins.
  void configure(const config::Overload& overload);

 private:
  void look();
  [[nodiscard]] std::uint64_t resident() const noexcept;
  void judge(std::uint64_t resident);
  void give_back(std::uint64_t resident);

  const std::shared_ptr<proxy::Admission> admission_;
  boost::asio::steady_timer timer_;
  std::optional<std::uint64_t> threshold_;
  int statm_;  // kept open: a look costs one read
  std::chrono::steady_clock::time_point looked_at_return_{};
  std::uint64_t after_return_ = 0, before_ = 0;  // resident
};

}  // namespace clockwise::runtime
