// One listening socket of one worker: accepts, and is what its sessions look up their settings in.
//
// Each worker binds the same address with SO_REUSEPORT, so that the kernel spreads connections and
// no worker wakes for another's. A unix socket is shared by all. One thread.
#pragma once

#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "proxy/context.h"
#include "proxy/networks.h"
#include "proxy/worker.h"

namespace clockwise::proxy {

class Session;

class Listener {
 public:
  Listener(Context& context, std::shared_ptr<const ListenerSpec> spec);
  ~Listener();

  // Binds and listens; the error names the listener, its address and the cause.
  [[nodiscard]] Result<void> open();
  void start_accepting();
  void stop_accepting();
  // New settings under the same name; sessions use them from their next request on.
  void configure(std::shared_ptr<const ListenerSpec> spec, PoolView* pool);

  [[nodiscard]] const ListenerSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] const config::Listener& config() const noexcept { return spec_->config; }
  [[nodiscard]] PoolView* pool() const noexcept { return pool_; }
  [[nodiscard]] metrics::ListenerCells& cells() noexcept { return cells_; }
  [[nodiscard]] Context& context() noexcept { return context_; }
  [[nodiscard]] bool trusts(std::string_view client_ip) const {
    return trusted_.contains(client_ip);
  }

  void leave(Session& session);
  [[nodiscard]] std::size_t sessions() const noexcept { return sessions_.size(); }
  // Stops accepting; sessions end with their next answer, or soon when no request comes.
  void drain();
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  void drop_all();

 private:
  void bind(boost::system::error_code& error);
  void share(boost::system::error_code& error);
  void accept_soon();
  void accept_ready();
  void pause_accepting();
  void admit(int descriptor, const sockaddr_storage& address);

  Context& context_;
  std::shared_ptr<const ListenerSpec> spec_;
  metrics::ListenerCells& cells_;
  PoolView* pool_ = nullptr;
  Networks trusted_;
  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol,
                                     boost::asio::io_context::executor_type>
      acceptor_;
  boost::asio::steady_timer pause_;
  bool accepting_ = false;
  bool draining_ = false;
  std::vector<Session*> sessions_;
};

}  // namespace clockwise::proxy
