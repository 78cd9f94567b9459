// A second attempt at a request whose first is slow (config::Hedge), and the clock that says when.
//
// A Hedge sends one request without a body to one server and reads until the head of its answer is
// there. From then on, or when the first attempt fails before, the exchange takes it over as if it
// had been its own; else it is dropped, which closes its connection. One thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>

#include "proxy/decide.h"
#include "proxy/outbox.h"
#include "upstream/connections.h"
#include "upstream/wait_queue.h"

namespace clockwise::proxy {

class Context;

// Calls who waits for an answer when it is late. One for each pool, since the time allowed is that
// of a pool: whoever came first is due first, and one timer is enough.
class HedgeClock {
 public:
  class Place : upstream::WaitQueue::Place {
   public:
    virtual ~Place() = default;
    [[nodiscard]] bool set() const noexcept { return waiting(); }
    virtual void on_late() = 0;

   private:
    friend class HedgeClock;
    std::uint64_t due_ns_ = 0;
  };

  explicit HedgeClock(io::Loop& loop) : loop_(loop), timer_(loop.io) {}

  void set(Place& place, std::chrono::nanoseconds after);
  void clear(Place& place) noexcept { queue_.leave(place); }
  void stop();  // no timer is left that would keep the loop from ending

 private:
  void start_timer();
  void ring();

  io::Loop& loop_;
  boost::asio::steady_timer timer_;
  upstream::WaitQueue queue_;
  bool running_ = false;
  bool stopped_ = false;
};

class Hedge final : upstream::ServerConnection::User {
 public:
  // The exchange. Each call may destroy the hedge.
  class Owner {
   public:
    // Puts the request as `target` gets it into Context::pieces.
    virtual void write_hedge(const upstream::ServerConnections& target) = 0;
    // The head of its answer is there, at the front of the connection's buffer.
    virtual void on_hedge_answered(unsigned status) = 0;
    virtual void on_hedge_failed(upstream::ServerConnections& target, Failure failure,
                                 bool reused) = 0;

   protected:
    ~Owner() = default;
  };

  // Where the attempt stands, for whoever takes it over.
  struct State {
    upstream::ServerConnections* target = nullptr;
    upstream::ServerConnection* server = nullptr;  // lent
    ring::ServerIndex index = 0;
    Outbox to_server;
    std::uint64_t dispatched_ns = 0;
    bool written = false;  // some octet of the request
  };

  Hedge(Context& context, Owner& owner, const config::Limits& limits, http::Method method);
  ~Hedge();  // without a take_over(): the attempt counts as one without an answer

  // False: there is no connection without waiting for one, and nothing was done.
  [[nodiscard]] bool start(upstream::ServerConnections& target, ring::ServerIndex index);
  [[nodiscard]] State take_over(upstream::ServerConnection::User& by);
  // Its answer is not wanted, but counts for its server.
  void refuse(unsigned status);

 private:
  // It never waits.
  void on_server_leased(upstream::ServerConnection&) override {}
  void on_server_left() override {}
  void on_server_connected(const io::error_code& error) override;
  void on_server_read(const io::error_code& error, std::size_t n) override;
  void on_server_readable(const io::error_code&) override {}
  void on_server_writable(const io::error_code& error) override;
  void send();
  void written(Outbox::Result result);
  void read_head();
  void fail(Failure failure);
  void end(metrics::Code code);

  Context& context_;
  Owner& owner_;
  const config::Limits limits_;
  const http::Method method_;
  State state_;
  std::size_t scanned_ = 0;
  std::uint32_t interims_ = 0;
};

}  // namespace clockwise::proxy
