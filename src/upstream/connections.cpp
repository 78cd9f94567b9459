#include "upstream/connections.h"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace clockwise::upstream {

ServerConnection::ServerConnection(io::Loop& loop, ServerConnections& home)
    : home_(home), stream_(io::make_stream(loop, *this)) {}

void ServerConnection::on_read(const io::error_code& error, std::size_t n) {
  if (user_ != nullptr) return user_->on_server_read(error, n);
  // Idle: the server closed it, or sent what nobody asked for.
  home_.remove_idle(*this);
}

void ServerConnection::on_readable(const io::error_code& error) {
  if (user_ != nullptr) user_->on_server_readable(error);
}

void ServerConnection::on_writable(const io::error_code& error) {
  if (user_ != nullptr) user_->on_server_writable(error);
}

void ServerConnection::on_deadline() {
  if (user_ == nullptr) home_.remove_idle(*this);
}

// A name may have several addresses: each is tried once, within the caller's deadline.
void ServerConnection::connect_next(const io::error_code& last) {
  const auto& endpoints = home_.endpoints_;
  if (next_endpoint_ >= endpoints.size()) return user_->on_server_connected(last);
  const std::size_t turn = std::size_t{first_endpoint_} + next_endpoint_++;
  stream_->connect(endpoints[turn % endpoints.size()]);
}

void ServerConnection::on_connected(const io::error_code& error) {
  if (user_ == nullptr) return;
  if (error) {
    // A socket that failed to connect cannot be used again.
    stream_->close();
    return connect_next(error);
  }
  connected_ = true;
  home_.cells_.connections_opened.add();
  stream_->no_delay();
  user_->on_server_connected(error);
}

ServerConnections::ServerConnections(io::Loop& loop, std::shared_ptr<Backend> backend,
                                     std::size_t worker)
    : loop_(loop),
      backend_(std::move(backend)),
      cells_(backend_->cells.at(worker)),
      slots_(backend_->shared) {}

ServerConnections::~ServerConnections() { close_idle(); }

void ServerConnections::configure(const Server& server, const config::Pool& pool) {
  retired_ = false;  // it may have left the list and come back
  on_ring_ = server.config.on_ring();
  address_ = server.config.address.text;
  endpoints_ = server.endpoints;
  health_ = server.health;
  limits_ = pool.connections;
  slots_.limit(limits_.max);
  to_give_up_ = 0;
  while (!idle_.empty() && (idle_.size() > limits_.max_idle || slots_.exceeded()))
    remove_idle(*idle_.front());
  idle_timeout_ = static_cast<io::Milliseconds>(pool.timeouts.idle.count());
}

ServerConnection* ServerConnections::lease(ServerConnection::User& user, bool fresh) {
  if (!queue_.empty()) return nullptr;
  if (!fresh && !idle_.empty()) return &take_idle(user);
  return make_room() ? &open(user) : nullptr;
}

// A slot for a new connection; an idle one, which was not good enough, makes room.
bool ServerConnections::make_room() {
  if (slots_.take()) return true;
  if (idle_.empty()) return false;
  remove_idle(*idle_.front());
  return slots_.take();
}

void ServerConnections::lend(ServerConnection& connection, ServerConnection::User& user) noexcept {
  ++lent_;
  cells_.connections_active.add();
  connection.user_ = &user;
  ++connection.exchanges_;
}

ServerConnection& ServerConnections::take_idle(ServerConnection::User& user) {
  ServerConnection* connection = idle_.back().release();
  idle_.pop_back();
  cells_.connections_idle.sub();
  loop_.deadlines.clear(*connection);
  connection->stream_->stop_watching();
  lend(*connection, user);
  return *connection;
}

// REQUIRES: a slot was taken for it.
ServerConnection& ServerConnections::open(ServerConnection::User& user) {
  auto* connection = new ServerConnection(loop_, *this);
  lend(*connection, user);
  connection->first_endpoint_ = turn_++;
  connection->connect_next(boost::asio::error::host_unreachable);
  return *connection;
}

void ServerConnections::give_back(ServerConnection& connection, bool reusable, bool watch_now) {
  std::unique_ptr<ServerConnection> owned(&connection);
  --lent_;
  cells_.connections_active.sub();
  connection.user_ = nullptr;
  if (to_give_up_ > 0) {
    --to_give_up_;
    return end(std::move(owned));
  }
  const bool too_many = idle_.size() >= limits_.max_idle || slots_.exceeded();
  if (!reusable || retired_ || too_many) return end(std::move(owned));
  connection.idle_slot_ = static_cast<std::uint32_t>(idle_.size());
  cells_.connections_idle.add();
  loop_.deadlines.set(connection, loop_.now() + idle_timeout_);
  if (watch_now) {
    connection.stream_->read_soon();
  } else {
    connection.stream_->watch_idle();
  }
  idle_.push_back(std::move(owned));
  if (!queue_.empty()) wake_waiters();
}

bool ServerConnections::join(Waiter& waiter) {
  if (queue_.size() >= limits_.queue) return false;
  queue_.join(waiter);
  slots_.wait();
  cells_.waiting.add();
  return true;
}

void ServerConnections::leave(Waiter& waiter) noexcept {
  queue_.leave(waiter);
  slots_.waited();
  cells_.waiting.sub();
}

// At the end of the turn: whoever gave the connection back is in the middle of something.
void ServerConnections::wake_waiters() {
  if (std::exchange(wake_posted_, true)) return;
  boost::asio::post(loop_.io, [this] {
    wake_posted_ = false;
    serve_waiters();
  });
}

ServerConnection::User& ServerConnections::take_waiter() noexcept {
  auto& waiter = static_cast<Waiter&>(queue_.first());
  leave(waiter);
  return waiter.user_;
}

void ServerConnections::serve_waiters() {
  while (!queue_.empty() && !on_ring_) take_waiter().on_server_left();
  while (!queue_.empty() && (!idle_.empty() || slots_.take())) {
    ServerConnection::User& user = take_waiter();
    user.on_server_leased(idle_.empty() ? open(user) : take_idle(user));
  }
}

void ServerConnections::share_with_others() {
  serve_waiters();
  to_give_up_ = slots_.to_give_up(loop_.now(), static_cast<std::uint32_t>(idle_.size()));
  while (to_give_up_ > 0 && !idle_.empty()) {
    --to_give_up_;
    remove_idle(*idle_.front());
  }
}

void ServerConnections::remove_idle(ServerConnection& connection) {
  const std::size_t slot = connection.idle_slot_;
  auto owned = std::move(idle_[slot]);
  if (slot + 1 != idle_.size()) {
    idle_[slot] = std::move(idle_.back());
    idle_[slot]->idle_slot_ = static_cast<std::uint32_t>(slot);
  }
  idle_.pop_back();
  cells_.connections_idle.sub();
  end(std::move(owned));
}

void ServerConnections::end(std::unique_ptr<ServerConnection> connection) {
  connection->stream_->close();
  loop_.deadlines.clear(*connection);
  loop_.bury(std::move(connection));
  slots_.give_back();
  if (!queue_.empty()) wake_waiters();
}

std::size_t ServerConnections::close_idle() {
  const std::size_t closed = idle_.size();
  while (!idle_.empty()) remove_idle(*idle_.back());
  return closed;
}

void ServerConnections::retire() {
  retired_ = true;
  on_ring_ = false;
  close_idle();
}

}  // namespace clockwise::upstream
