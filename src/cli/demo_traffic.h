// The clients of the demo: a steady trickle of requests over a fixed set of keys.
//
// Eight keep-alive connections on one thread of their own. Every answer is the name of the server
// that gave it, which is remembered by key, so that the demo can be held against the ring.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace clockwise::cli {

class DemoTraffic {
 public:
  static constexpr unsigned kKeys = 1000;
  static constexpr unsigned kClients = 8;

  DemoTraffic(std::uint16_t port, unsigned requests_per_second);
  ~DemoTraffic();
  DemoTraffic(const DemoTraffic&) = delete;
  DemoTraffic& operator=(const DemoTraffic&) = delete;

  void start();

  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_; }
  // No answer, another status than 200, or a connection that broke.
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

  using Owners = std::array<std::string, kKeys>;
  // By key number: who answered last; empty for a key not asked for since the last call.
  [[nodiscard]] Owners take_owners();
  // "/object/17": what the client asks for, and so the ring key.
  [[nodiscard]] static std::string key(unsigned number);

  // For the connections.
  void count(unsigned key_number, std::string server);
  void count_failure() noexcept { ++failed_; }

 private:
  boost::asio::io_context io_{1};
  std::uint16_t port_;
  std::chrono::nanoseconds pause_;  // between two requests of one connection
  std::thread thread_;
  std::atomic<std::uint64_t> answered_{0}, failed_{0};
  std::mutex mutex_;
  Owners owners_;
};

}  // namespace clockwise::cli
