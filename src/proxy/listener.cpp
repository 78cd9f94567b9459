#include "proxy/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <utility>

#include "proxy/memcached_session.h"
#include "proxy/routes.h"
#include "proxy/session.h"

namespace clockwise::proxy {

namespace asio = boost::asio;

namespace {

constexpr socklen_t kTextSize = 46;               // INET6_ADDRSTRLEN
constexpr int kBacklog = 4096;                    // cut by net.core.somaxconn
constexpr int kAcceptsPerEvent = 64;              // then others get their turn
constexpr std::chrono::milliseconds kPause{100};  // when descriptors have run out

// What a client gets that is not admitted; no exchange, no allocation.
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n"
    "Retry-After: 1\r\nConnection: close\r\nVia: 1.1 clockwise\r\n"
    "Proxy-Status: clockwise; error=proxy_internal_response\r\n\r\ntoo many connections\n";
constexpr std::string_view kShortOfMemory =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n"
    "Retry-After: 1\r\nConnection: close\r\nVia: 1.1 clockwise\r\n"
    "Proxy-Status: clockwise; error=proxy_internal_response\r\n\r\nshort of memory\n";

// Whoever connects twice as fast as we can look must not make us look at every idle connection.
constexpr std::size_t kLooks = 8;

constexpr std::uint64_t kIdleForAWhile = 1'000'000'000;     // nanoseconds
constexpr std::uint64_t kLingersForAWhile = 1'000'000'000;  // the answer has most likely arrived

void turn_away(int descriptor, std::string_view answer) {
  (void)!::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(descriptor, SHUT_WR);
  // What the client has sent already is taken, or the close would be a reset that may overtake the
  // answer.
  std::array<char, 4096> unread;
  (void)!::recv(descriptor, unread.data(), unread.size(), MSG_DONTWAIT);
  ::close(descriptor);
}

std::string_view text_of(const sockaddr_storage& address, std::array<char, kTextSize>& text) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    if (::inet_ntop(AF_INET, &v4.sin_addr, text.data(), kTextSize) != nullptr) return text.data();
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      if (::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), kTextSize) != nullptr) {
        return text.data();
      }
    }
    if (::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), kTextSize) != nullptr) {
      return text.data();
    }
  }
  return {};  // a unix socket has no address of its own
}

}  // namespace

Listener::Listener(Context& context, std::shared_ptr<const ListenerSpec> spec)
    : context_(context),
      spec_(std::move(spec)),
      cells_(spec_->counters->cells.at(context.worker)),
      trusted_(spec_->config.forwarded.trust),
      acceptor_(context.loop.io),
      pause_(context.loop.io) {}

Listener::~Listener() = default;

Result<void> Listener::open() {
  const config::Listener& config = spec_->config;
  const auto failed = [&](const boost::system::error_code& error) {
    return fail(fmt::format("listener {}: cannot listen on {}: {}", config.name,
                            config.address.text, error.message()));
  };
  boost::system::error_code error;
  if (config.address.is_unix()) {
    share(error);
  } else {
    bind(error);
  }
  if (error) return failed(error);
  acceptor_.native_non_blocking(true, error);
  if (error) return failed(error);
  return {};
}

// Opens a socket of this worker's own.
void Listener::bind(boost::system::error_code& error) {
  const config::Address& wanted = spec_->config.address;
  const auto address = asio::ip::make_address(wanted.host, error);
  if (error) return;
  const io::Endpoint endpoint = asio::ip::tcp::endpoint(address, wanted.port);
  acceptor_.open(endpoint.protocol(), error);
  if (error) return;
  const int on = 1;
  const int fd = acceptor_.native_handle();
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  // Accepted sockets inherit it, which saves a call for each.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kBacklog, error);
}

// Accepts from the socket that all workers share.
void Listener::share(boost::system::error_code& error) {
  const int fd = ::fcntl(spec_->listening_descriptor, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) {
    error = {errno, boost::system::system_category()};
    return;
  }
  acceptor_.assign(asio::generic::stream_protocol(AF_UNIX, 0), fd, error);
  if (error) ::close(fd);
}

void Listener::configure(std::shared_ptr<const ListenerSpec> spec, PoolView* pool,
                         std::vector<PoolView*> routed) {
  if (spec_ != spec) {
    spec_ = std::move(spec);
    trusted_ = Networks(spec_->config.forwarded.trust);
  }
  pool_ = pool;
  routed_ = std::move(routed);
}

template <class Asked>
PoolView* Listener::routed_pool(const Asked& asked) const noexcept {
  const std::optional<std::size_t> route = first_match(spec_->config.routes, asked);
  return route ? routed_[*route] : pool_;
}
template PoolView* Listener::routed_pool(const http::RequestHead& asked) const noexcept;
template PoolView* Listener::routed_pool(const std::string_view& asked) const noexcept;

PoolView* Listener::newest(const PoolView& view) const noexcept {
  const auto name = [](const PoolView& one) -> std::string_view {
    return one.cache.cache ? std::string_view(one.cache.cache->config.name) : std::string_view();
  };
  PoolView* of_pool = pool_;
  for (PoolView* routed : routed_) {
    if (routed->pool->config.name != view.pool->config.name) continue;
    if (name(*routed) == name(view)) return routed;
    if (of_pool->pool->config.name != view.pool->config.name) of_pool = routed;
  }
  return of_pool;
}

void Listener::start_accepting() {
  accepting_ = true;
  accept_soon();
}

void Listener::stop_accepting() {
  accepting_ = false;
  pause_.cancel();
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

void Listener::accept_soon() {
  acceptor_.async_wait(decltype(acceptor_)::wait_read,
                       [this](const boost::system::error_code& error) {
                         if (!error && accepting_) accept_ready();
                       });
}

void Listener::accept_ready() {
  context_.loop.refresh();
  if (!accept_waiting(kAcceptsPerEvent)) return pause_accepting();
  accept_soon();
}

bool Listener::accept_waiting(int most) {
  for (int i = 0; i < most; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = ::accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&address),
                             &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      admit(fd, address);
      continue;
    }
    if (errno == EAGAIN) break;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
    // Anything else concerns one connection that is gone already.
  }
  return true;
}

// Descriptors have run out: spinning on accept would only burn the core. The backlog holds them.
void Listener::pause_accepting() {
  context_.loop.free_descriptors();
  pause_.expires_after(kPause);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error && accepting_) accept_ready();
  });
}

void Listener::admit(int descriptor, const sockaddr_storage& address) {
  cells_.accepted.add();
  const auto refuse = [&](metrics::Rejected reason, std::string_view answer) {
    metrics::at(cells_.rejected, reason).add();
    turn_away(descriptor, answer);
  };
  if (context_.admission->short_of_memory.load(std::memory_order_relaxed))
    return refuse(metrics::Rejected::memory, kShortOfMemory);
  std::array<char, kTextSize> text;
  const std::string_view client = text_of(address, text);
  const std::uint32_t per_client = spec_->config.limits.per_client;
  const bool counted = per_client != 0 && !client.empty();
  upstream::ClientCounts& clients = spec_->counters->clients;
  if (counted && !clients.admit(client, per_client)) return refuse(metrics::Rejected::limit, kFull);
  if (!has_room(descriptor)) {
    if (counted) clients.leave(client);
    return refuse(metrics::Rejected::limit, kFull);
  }
  if (config().protocol == config::Protocol::memcached)
    add(*new (context_.memcached_sessions)
            MemcachedSession(*this, address.ss_family, descriptor, client, counted));
  else
    add(*new (context_.sessions) Session(*this, address.ss_family, descriptor, client, counted));
}

void Listener::add(Client& client) {
  client.slot = static_cast<std::uint32_t>(clients_.size());
  clients_.push_back(&client);
  client.start();
}

// Whoever has a request to send goes before those who have none.
bool Listener::has_room(int descriptor) {
  if (descriptor >= context_.admission->client_descriptors && !context_.loop.free_descriptors())
    return false;
  return clients_.size() - fetches_ < spec_->max_connections_per_worker || close_idle(1) > 0;
}

std::size_t Listener::close_idle(std::size_t most) {
  const std::uint64_t now = context_.loop.now_ns();
  const std::pair<Waiting&, std::uint64_t> order[] = {{lingering_, now - kLingersForAWhile},
                                                      {idle_, now - kIdleForAWhile},
                                                      {silent_, now},
                                                      {lingering_, now},
                                                      {idle_, now}};
  std::size_t closed = 0;
  for (const auto& [waiting, since_ns] : order)
    if (closed < most) closed += close_some(waiting, most - closed, since_ns);
  return closed;
}

// Of those that have waited since `since_ns` or longer.
std::size_t Listener::close_some(Waiting& waiting, std::size_t most, std::uint64_t since_ns) {
  std::size_t closed = 0;
  auto next = waiting.begin();
  for (std::size_t looks = most + kLooks; looks > 0 && next != waiting.end() && closed < most;
       --looks) {
    auto& client = static_cast<Client&>(*next++);
    if (client.waits_since_ns() > since_ns) break;
    if (client.close_if_unused()) ++closed;
  }
  return closed;
}

void Listener::begin_fetch(const Session& session, std::string_view request, Fetch fetch) {
  auto* fetching = new (context_.sessions) Session(*this, session.client_ip(), session.trusted());
  fetching->slot = static_cast<std::uint32_t>(clients_.size());
  clients_.push_back(fetching);
  ++fetches_;
  fetching->start_fetch(request, std::move(fetch));
}

void Listener::leave(Client& client) {
  if (!client.has_client()) --fetches_;
  if (client.counted()) spec_->counters->clients.leave(client.client_ip());
  const std::uint32_t slot = client.slot;
  clients_[slot] = clients_.back();
  clients_[slot]->slot = slot;
  clients_.pop_back();
  context_.loop.bury(std::unique_ptr<io::Mortal>(&client));
}

void Listener::drain() {
  draining_ = true;
  // Who has connected already would be reset by the close.
  if (accepting_) (void)accept_waiting(kBacklog);
  stop_accepting();
  for (Client* client : std::vector<Client*>(clients_)) client->drain();
}

void Listener::drop_all() {
  stop_accepting();
  for (Client* client : std::vector<Client*>(clients_)) client->drop();
}

}  // namespace clockwise::proxy
