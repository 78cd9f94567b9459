// The upstream servers of the demo: each answers every request with its own name and counts.
//
// All of them run on one thread of their own and listen on free ports of the loopback interface.
// Counters may be read from any thread.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace clockwise::cli {

class DemoOrigins {
 public:
  struct Origin {
    std::string name;
    std::uint16_t port = 0;
    std::atomic<std::uint64_t> requests{0};
  };

  DemoOrigins() = default;
  ~DemoOrigins();
  DemoOrigins(const DemoOrigins&) = delete;
  DemoOrigins& operator=(const DemoOrigins&) = delete;

  // One more server. REQUIRES: start() was not called yet.
  [[nodiscard]] Result<void> add(const std::string& name);
  void start();

  [[nodiscard]] const std::deque<Origin>& all() const noexcept { return origins_; }
  [[nodiscard]] std::vector<std::uint16_t> ports() const;
  // Requests that the server behind "127.0.0.1:PORT" answered; 0 when it is none of ours.
  [[nodiscard]] std::uint64_t requests_at(const std::string& address) const;

 private:
  boost::asio::io_context io_{1};
  std::deque<Origin> origins_;
  std::deque<boost::asio::ip::tcp::acceptor> acceptors_;
  std::thread thread_;
};

}  // namespace clockwise::cli
