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
#include "proxy/client.h"
#include "proxy/context.h"
#include "proxy/networks.h"
#include "proxy/worker.h"

namespace clockwise::proxy {

class Session;
struct Fetch;

class Listener {
 public:
  Listener(Context& context, std::shared_ptr<const ListenerSpec> spec);
  ~Listener();

  // Binds and listens; the error names the listener, its address and the cause.
  [[nodiscard]] Result<void> open();
  void start_accepting();
  void stop_accepting();
  // New settings under the same name; sessions use them from their next request on. `routed`: the
  // pools of the routes, in their order.
  void configure(std::shared_ptr<const ListenerSpec> spec, PoolView* pool,
                 std::vector<PoolView*> routed);

  [[nodiscard]] const ListenerSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] const config::Listener& config() const noexcept { return spec_->config; }
  // Where an item of memcached goes.
  [[nodiscard]] PoolView* pool_for_key(std::string_view key) const noexcept {
    return routed_.empty() ? pool_ : routed_pool(key);
  }
  // Where a request goes.
  [[nodiscard]] PoolView* pool_for(const http::RequestHead& head) const noexcept {
    return routed_.empty() ? pool_ : routed_pool(head);
  }
  // The newest view of the pool that `view` is one of; of the default pool where this listener no
  // longer knows that one.
  [[nodiscard]] PoolView* newest(const PoolView& view) const noexcept;
  // Of the items that no route names. REQUIRES: it speaks memcached.
  [[nodiscard]] PoolView& default_pool() const noexcept { return *pool_; }
  [[nodiscard]] metrics::ListenerCells& cells() noexcept { return cells_; }
  [[nodiscard]] Context& context() noexcept { return context_; }
  [[nodiscard]] bool trusts(std::string_view client_ip) const {
    return trusted_.contains(client_ip);
  }

  // Fetches for the store, on behalf of the client of `session`.
  void begin_fetch(const Session& session, std::string_view request, Fetch fetch);
  void leave(Client& client);
  // It waits for a request; `first`: it has not had one yet.
  void now_idle(IdleLink& client, bool first) { (first ? silent_ : idle_).push_back(client); }
  // It has had its last answer, and is read out.
  void now_lingering(IdleLink& client) { lingering_.push_back(client); }
  // Ends up to `most` connections without a request; how many it were. First those that have been
  // read out for a while after their last answer; then those that have been idle for a while, which
  // their clients expect; then those that never sent anything; then the rest, in the same order.
  std::size_t close_idle(std::size_t most);
  [[nodiscard]] std::size_t sessions() const noexcept { return clients_.size(); }
  // Takes who is waiting and stops accepting; sessions end with their next answer, or soon when no
  // request comes.
  void drain();
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  void drop_all();

 private:
  // Sessions without a request, the one that has waited longest first.
  using Waiting = boost::intrusive::list<IdleLink, boost::intrusive::constant_time_size<false>>;

  template <class Asked>
  [[nodiscard]] PoolView* routed_pool(const Asked& asked) const noexcept;
  void bind(boost::system::error_code& error);
  void share(boost::system::error_code& error);
  void accept_soon();
  void accept_ready();
  // Accepts up to `most` of those who wait; false when descriptors have run out.
  [[nodiscard]] bool accept_waiting(int most);
  void pause_accepting();
  void admit(int descriptor, const sockaddr_storage& address);
  void add(Client& client);
  [[nodiscard]] bool has_room(int descriptor);
  std::size_t close_some(Waiting& waiting, std::size_t most, std::uint64_t since_ns);

  Context& context_;
  std::shared_ptr<const ListenerSpec> spec_;
  metrics::ListenerCells& cells_;
  PoolView* pool_ = nullptr;
  std::vector<PoolView*> routed_;  // by the routes of the configuration
  Networks trusted_;
  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol,
                                     boost::asio::io_context::executor_type>
      acceptor_;
  boost::asio::steady_timer pause_;
  bool accepting_ = false;
  bool draining_ = false;
  std::vector<Client*> clients_;
  std::size_t fetches_ = 0;  // of them without a client
  Waiting idle_, silent_, lingering_;
};

}  // namespace clockwise::proxy
