// Connections of one worker to one server: lent for an exchange, kept warm in between.
//
// Where `connections.max` is reached an exchange waits in a queue of this worker. It is served when
// a connection of this worker comes back or closes, or, within a tick, when another worker closed
// one.
//
// One thread. A connection is either idle (ours), lent (its User's), or dying. Idle connections are
// watched: whatever arrives on them, an end or octets nobody asked for, kills them, so that no
// answer can reach a request it does not belong to (RFC 9112 section 9.2).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/model.h"
#include "io/loop.h"
#include "io/stream.h"
#include "metrics/cells.h"
#include "upstream/routing.h"
#include "upstream/slots.h"
#include "upstream/wait_queue.h"

namespace clockwise::upstream {

class ServerConnections;

class ServerConnection final : public io::Stream::Owner, public io::Mortal, io::Deadlines::Node {
 public:
  // The exchange that borrowed the connection; told of everything until it gives it back.
  class User {
   public:
    // The connection it waited for in the queue: as one from lease().
    virtual void on_server_leased(ServerConnection& connection) = 0;
    // Instead of the connection it waited for: the server has left the ring.
    virtual void on_server_left() = 0;
    virtual void on_server_connected(const io::error_code& error) = 0;
    virtual void on_server_read(const io::error_code& error, std::size_t n) = 0;
    virtual void on_server_readable(const io::error_code& error) = 0;
    virtual void on_server_writable(const io::error_code& error) = 0;

   protected:
    ~User() = default;
  };

  ServerConnection(io::Loop& loop, ServerConnections& home);
  ~ServerConnection() override = default;

  [[nodiscard]] io::Stream& stream() noexcept { return *stream_; }
  [[nodiscard]] ServerConnections& home() noexcept { return home_; }
  [[nodiscard]] bool connected() const noexcept { return connected_; }
  // Whether it has carried an exchange before: a failure may then be a stale connection, which says
  // nothing about the server.
  [[nodiscard]] bool reused() const noexcept { return exchanges_ > 1; }

  // What comes from now on is told to another user.
  void hand_over(User& user) noexcept { user_ = &user; }

  [[nodiscard]] bool quiet() const noexcept override { return stream_->quiet(); }

 private:
  friend class ServerConnections;
  void on_read(const io::error_code& error, std::size_t n) override;
  void on_readable(const io::error_code& error) override;
  void on_writable(const io::error_code& error) override;
  void on_connected(const io::error_code& error) override;
  void on_deadline() override;
  void connect_next(const io::error_code& last);

  ServerConnections& home_;
  std::unique_ptr<io::Stream> stream_;
  User* user_ = nullptr;
  std::uint32_t exchanges_ = 0;
  std::uint32_t first_endpoint_ = 0, next_endpoint_ = 0;
  std::uint32_t idle_slot_ = 0;  // place in the idle list while idle
  bool connected_ = false;
};

// A place in the queue for a connection, embedded in its User.
class Waiter : WaitQueue::Place {
 public:
  explicit Waiter(ServerConnection::User& user) noexcept : user_(user) {}
  using WaitQueue::Place::waiting;

 private:
  friend class ServerConnections;
  ServerConnection::User& user_;
};

class ServerConnections {
 public:
  ServerConnections(io::Loop& loop, std::shared_ptr<Backend> backend, std::size_t worker);
  ~ServerConnections();
  ServerConnections(const ServerConnections&) = delete;
  ServerConnections& operator=(const ServerConnections&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return backend_->name; }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] metrics::BackendCells& cells() noexcept { return cells_; }
  [[nodiscard]] HealthMark& health() noexcept { return *health_; }
  [[nodiscard]] bool reachable() const noexcept { return !endpoints_.empty(); }
  // In the newest snapshot. A server that is not gets nothing new, whoever knows it still.
  [[nodiscard]] bool on_ring() const noexcept { return on_ring_; }

  // Settings of the newest snapshot; idle connections beyond its limits end. A new address is a new
  // ServerConnections.
  void configure(const Server& server, const config::Pool& pool);

  // A connection for one exchange: an idle one, ready to use (connected()), or a new one that will
  // tell `user` with on_server_connected(). `fresh`: never an idle one. Null: the server has all
  // the connections it may have, or others wait already. REQUIRES: reachable().
  [[nodiscard]] ServerConnection* lease(ServerConnection::User& user, bool fresh);
  // Ends the loan. `reusable`: the exchange ended cleanly and nothing is left in the buffer;
  // anything else closes it. `watch_now`: framing gave no proof that the server sent nothing more.
  void give_back(ServerConnection& connection, bool reusable, bool watch_now);

  // Waits for a connection: one on_server_leased() or on_server_left() to come, never from within
  // join(), unless it leaves before. False: the queue is full.
  [[nodiscard]] bool join(Waiter& waiter);
  void leave(Waiter& waiter) noexcept;
  // Every tick: serves who waits here and gives up what others wait for.
  void on_tick() {
    if (slots_.limited() || !queue_.empty()) share_with_others();
  }

  // Exchanges hold the object they were started on, also after its server left the list.
  void hold() noexcept { ++holders_; }
  void let_go() noexcept { --holders_; }
  // Its server left the list or moved: idle connections end now, lent ones when they come back.
  void retire();
  [[nodiscard]] bool disposable() const noexcept {
    return retired_ && holders_ == 0 && lent_ == 0 && !wake_posted_;
  }
  std::size_t close_idle();  // how many there were

 private:
  friend class ServerConnection;
  [[nodiscard]] ServerConnection& take_idle(ServerConnection::User& user);
  [[nodiscard]] ServerConnection& open(ServerConnection::User& user);
  [[nodiscard]] bool make_room();
  [[nodiscard]] ServerConnection::User& take_waiter() noexcept;
  void lend(ServerConnection& connection, ServerConnection::User& user) noexcept;
  void wake_waiters();
  void serve_waiters();
  void share_with_others();
  void remove_idle(ServerConnection& connection);
  void end(std::unique_ptr<ServerConnection> connection);

  io::Loop& loop_;
  std::shared_ptr<Backend> backend_;
  metrics::BackendCells& cells_;
  std::shared_ptr<HealthMark> health_;
  std::string address_;
  std::vector<Endpoint> endpoints_;
  config::Connections limits_;
  Slots slots_;
  WaitQueue queue_;
  io::Milliseconds idle_timeout_ = 0;
  std::vector<std::unique_ptr<ServerConnection>> idle_;  // the last one in goes out first
  std::uint32_t holders_ = 0, lent_ = 0;
  std::uint32_t turn_ = 0;        // new connections take the addresses of a name in turn
  std::uint32_t to_give_up_ = 0;  // connections to be closed for other workers when they come back
  bool on_ring_ = true;
  bool retired_ = false;
  bool wake_posted_ = false;
};

}  // namespace clockwise::upstream
