#include "upstream/connections.h"

#include <boost/asio/error.hpp>

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
    : loop_(loop), backend_(std::move(backend)), cells_(backend_->cells.at(worker)) {}

ServerConnections::~ServerConnections() { close_idle(); }

void ServerConnections::configure(const Server& server, const config::Pool& pool) {
  retired_ = false;  // it may have left the list and come back
  address_ = server.config.address.text;
  endpoints_ = server.endpoints;
  limits_ = pool.connections;
  idle_timeout_ = static_cast<io::Milliseconds>(pool.timeouts.idle.count());
}

ServerConnection& ServerConnections::lease(ServerConnection::User& user, bool fresh) {
  ++lent_;
  cells_.connections_active.add();
  if (!fresh && !idle_.empty()) {
    ServerConnection* connection = idle_.back().release();
    idle_.pop_back();
    cells_.connections_idle.sub();
    loop_.deadlines.clear(*connection);
    connection->stream_->stop_watching();
    connection->user_ = &user;
    ++connection->exchanges_;
    return *connection;
  }
  auto* connection = new ServerConnection(loop_, *this);
  connection->user_ = &user;
  connection->exchanges_ = 1;
  connection->first_endpoint_ = turn_++;
  connection->connect_next(boost::asio::error::host_unreachable);
  return *connection;
}

void ServerConnections::give_back(ServerConnection& connection, bool reusable, bool watch_now) {
  std::unique_ptr<ServerConnection> owned(&connection);
  --lent_;
  cells_.connections_active.sub();
  connection.user_ = nullptr;
  if (!reusable || retired_ || idle_.size() >= limits_.max_idle) return end(std::move(owned));
  connection.idle_slot_ = static_cast<std::uint32_t>(idle_.size());
  cells_.connections_idle.add();
  loop_.deadlines.set(connection, loop_.now() + idle_timeout_);
  if (watch_now) {
    connection.stream_->read_soon();
  } else {
    connection.stream_->watch_idle();
  }
  idle_.push_back(std::move(owned));
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
}

void ServerConnections::close_idle() {
  while (!idle_.empty()) remove_idle(*idle_.back());
}

void ServerConnections::retire() {
  retired_ = true;
  close_idle();
}

}  // namespace clockwise::upstream
