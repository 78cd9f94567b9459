#include "admin/server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "admin/access.h"

namespace clockwise::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

constexpr std::size_t kMaxConnections = 64;
constexpr std::uint32_t kMaxHead = 16 * 1024;
constexpr std::uint64_t kMaxBody = 4 * 1024 * 1024;
constexpr std::chrono::seconds kHead{5};  // idle time included
constexpr std::chrono::seconds kStep{10};
constexpr std::chrono::milliseconds kPause{100};

using Socket = asio::generic::stream_protocol::socket;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

bool is_local(const tcp::socket& socket) {
  error_code ec;
  const tcp::endpoint peer = socket.remote_endpoint(ec);
  if (ec) return false;
  const asio::ip::address& address = peer.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

bool is_local(const stream_protocol::socket&) { return true; }

Error cannot_listen(const config::Address& address, const error_code& ec) {
  return fail(fmt::format("admin.address: cannot listen on {}: {}", address.text, ec.message()));
}

// A socket file that nobody answers on was left behind by a process that died.
void remove_stale_socket(asio::io_context& io, const stream_protocol::endpoint& endpoint) {
  struct stat facts{};
  if (::lstat(endpoint.path().c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;
  stream_protocol::socket probe(io);
  error_code ec;
  probe.connect(endpoint, ec);
  if (ec == boost::system::errc::connection_refused) ::unlink(endpoint.path().c_str());
}

}  // namespace

// The thread's world: what lives as long as anyone may still post to it.
class AdminServer::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(Api& api) : api_(api) {}

  Result<config::Address> bind(const config::Address& address) {
    return address.is_unix() ? bind_unix(address) : bind_tcp(address);
  }
  void start();
  void stop();

  void respond(Request request, const std::shared_ptr<Session>& session);
  void closed(const std::shared_ptr<Session>& session);
  // Goes on accepting: to call when a place may have become free.
  void proceed();
  [[nodiscard]] asio::io_context& io() noexcept { return io_; }

 private:
  Result<config::Address> bind_tcp(config::Address address);
  Result<config::Address> bind_unix(const config::Address& address);
  void accept();
  template <class Acceptor>
  void accept_from(Acceptor& acceptor);
  template <class Accepted>
  void on_accept(const error_code& ec, Accepted socket);
  void proceed_later();
  bool make_room();

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  Api& api_;
  std::optional<tcp::acceptor> tcp_acceptor_;
  std::optional<stream_protocol::acceptor> unix_acceptor_;
  std::string unix_path_;
  asio::steady_timer pause_{io_};
  std::unordered_set<std::shared_ptr<Session>> sessions_;
  std::shared_ptr<Session> next_;  // accepted, but all places are taken by requests under way
  bool accepting_ = false;
  std::thread thread_;
};

// One connection: reads a request, has it answered, writes the answer, again.
class AdminServer::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Core& core, Socket socket, bool local)
      : core_(core), stream_(std::move(socket)), local_(local) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(kMaxHead);
    parser_->body_limit(kMaxBody);
    waits_since_ = std::chrono::steady_clock::now();
    stream_.expires_after(kHead);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& ec, std::size_t) { self->on_head(ec); });
  }

  void write(Response answer);

  // Since when a request is awaited that is not there as a whole; nothing while one is answered.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> waits_since() const {
    return waits_since_;
  }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(Socket::shutdown_send, ignored);
    stream_.close();
  }

 private:
  using Message = http::response<http::string_body>;

  void on_head(const error_code& ec) {
    if (ec) return fail(ec);
    const std::size_t hosts = parser_->get().count(http::field::host);
    if (hosts > 1 || (hosts == 0 && parser_->get().version() >= 11))
      return refuse(error_response(400, "bad_request", "a request has one Host"));
    // Beast takes codings that it does not know for no body at all.
    if (parser_->get().count(http::field::transfer_encoding) > 0)
      return refuse(error_response(411, "length_required", "send the body with a Content-Length"));
    if (!http::token_list(parser_->get()[http::field::expect]).exists("100-continue"))
      return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](const error_code& failed, std::size_t) {
                        failed ? self->fail(failed) : self->read_body();
                      });
  }

  void read_body() {
    stream_.expires_after(kStep);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& ec, std::size_t) { self->on_request(ec); });
  }

  void on_request(const error_code& ec) {
    if (ec) return fail(ec);
    waits_since_.reset();
    stream_.expires_never();  // a reload or a plan takes as long as it takes
    keep_alive_ = parser_->keep_alive();
    auto message = parser_->release();
    const auto field = [&](http::field name) { return std::string(message[name]); };
    Request request;
    request.method = message.method_string();
    request.target = message.target();
    request.local = local_;
    request.host = field(http::field::host);
    request.origin = field(http::field::origin);
    request.fetch_site = std::string(message["Sec-Fetch-Site"]);
    request.authorization = field(http::field::authorization);
    request.accept = field(http::field::accept);
    request.accept_encoding = field(http::field::accept_encoding);
    request.body = std::move(message.body());
    head_ = request.method == "HEAD";
    core_.respond(std::move(request), shared_from_this());
  }

  void fail(const error_code& ec) {
    if (ec == http::error::header_limit)
      return refuse(error_response(431, "head_too_large", "the head is larger than 16 KiB"));
    if (ec == http::error::body_limit)
      return refuse(error_response(413, "body_too_large", "the body is larger than 4 MiB"));
    const bool malformed = ec.category() == make_error_code(http::error::bad_target).category() &&
                           ec != http::error::end_of_stream && ec != http::error::partial_message;
    if (malformed) return refuse(error_response(400, "bad_request", "not an HTTP/1 request"));
    core_.closed(shared_from_this());
  }

  void refuse(Response answer) {
    keep_alive_ = false;
    head_ = false;
    write(std::move(answer));
  }

  void on_written(const error_code& ec) {
    if (ec || !keep_alive_) return core_.closed(shared_from_this());
    read();
    core_.proceed();
  }

  Core& core_;
  Stream stream_;
  const bool local_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Message message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;
  bool keep_alive_ = false;
  bool head_ = false;
};

void AdminServer::Session::write(Response answer) {
  waits_since_.reset();
  message_ = Message(static_cast<http::status>(answer.status), 11);
  message_.set(http::field::content_type, answer.content_type);
  message_.set(http::field::cache_control, "no-store");
  message_.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.headers) message_.set(name, value);
  message_.keep_alive(keep_alive_);
  message_.body() = std::move(answer.body);
  message_.prepare_payload();

  serializer_.emplace(message_);
  stream_.expires_after(kStep);
  const auto written = [self = shared_from_this()](const error_code& ec, std::size_t) {
    self->on_written(ec);
  };
  if (head_)
    http::async_write_header(stream_, *serializer_, written);
  else
    http::async_write(stream_, *serializer_, written);
}

Result<config::Address> AdminServer::Core::bind_tcp(config::Address address) {
  error_code ec;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  if (ec) return cannot_listen(address, ec);
  const tcp::endpoint endpoint = found.begin()->endpoint();

  tcp_acceptor_.emplace(io_);
  if (tcp_acceptor_->open(endpoint.protocol(), ec); ec) return cannot_listen(address, ec);
  tcp_acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
  if (tcp_acceptor_->bind(endpoint, ec); ec) return cannot_listen(address, ec);
  if (tcp_acceptor_->listen(asio::socket_base::max_listen_connections, ec); ec)
    return cannot_listen(address, ec);
  address.port = tcp_acceptor_->local_endpoint(ec).port();
  const bool v6 = address.host.find(':') != std::string::npos;
  address.text = v6 ? fmt::format("[{}]:{}", address.host, address.port)
                    : fmt::format("{}:{}", address.host, address.port);
  return address;
}

Result<config::Address> AdminServer::Core::bind_unix(const config::Address& address) {
  if (address.path.size() >= sizeof(sockaddr_un::sun_path))
    return cannot_listen(address, make_error_code(boost::system::errc::filename_too_long));
  const stream_protocol::endpoint endpoint(address.path);
  remove_stale_socket(io_, endpoint);

  error_code ec;
  unix_acceptor_.emplace(io_);
  if (unix_acceptor_->open(endpoint.protocol(), ec); ec) return cannot_listen(address, ec);
  // Before the bind, so that the file never exists with another mode.
  ::fchmod(unix_acceptor_->native_handle(), S_IRUSR | S_IWUSR);
  if (unix_acceptor_->bind(endpoint, ec); ec) return cannot_listen(address, ec);
  unix_path_ = address.path;
  if (unix_acceptor_->listen(asio::socket_base::max_listen_connections, ec); ec)
    return cannot_listen(address, ec);
  return address;
}

void AdminServer::Core::start() {
  proceed();
  thread_ = std::thread([this] { io_.run(); });
}

void AdminServer::Core::stop() {
  asio::post(io_, [this] {
    error_code ignored;
    if (tcp_acceptor_) tcp_acceptor_->close(ignored);
    if (unix_acceptor_) unix_acceptor_->close(ignored);
    pause_.cancel();
    for (const auto& session : sessions_) session->close();
    sessions_.clear();
    next_.reset();
    work_.reset();
  });
  if (thread_.joinable()) thread_.join();
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

void AdminServer::Core::accept() {
  if (tcp_acceptor_) return accept_from(*tcp_acceptor_);
  if (unix_acceptor_) return accept_from(*unix_acceptor_);
}

template <class Acceptor>
void AdminServer::Core::accept_from(Acceptor& acceptor) {
  if (!acceptor.is_open()) return;
  acceptor.async_accept(
      [this](const error_code& ec, auto socket) { this->on_accept(ec, std::move(socket)); });
}

template <class Accepted>
void AdminServer::Core::on_accept(const error_code& ec, Accepted accepted) {
  if (ec == asio::error::operation_aborted) return;
  accepting_ = false;
  // Out of descriptors, most likely: trying again at once would only burn the processor.
  if (ec) return proceed_later();
  const bool local = is_local(accepted);
  next_ = std::make_shared<Session>(*this, Socket(std::move(accepted)), local);
  proceed();
}

void AdminServer::Core::proceed() {
  if (accepting_) return;
  if (next_ && sessions_.size() >= kMaxConnections && !make_room()) return proceed_later();
  if (const auto session = std::exchange(next_, nullptr)) {
    sessions_.insert(session);
    session->read();
  }
  accepting_ = true;
  accept();
}

// Clients that are connected and ask nothing must not shut out a probe: the one that has waited
// longest goes, but for those that have hardly come. False: there is none.
bool AdminServer::Core::make_room() {
  std::shared_ptr<Session> longest;
  for (const auto& session : sessions_)
    if (session->waits_since() && (!longest || session->waits_since() < longest->waits_since()))
      longest = session;
  if (!longest || std::chrono::steady_clock::now() - *longest->waits_since() < kPause) return false;
  longest->close();
  sessions_.erase(longest);
  return true;
}

void AdminServer::Core::proceed_later() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const error_code& ec) {
    if (!ec) proceed();
  });
}

void AdminServer::Core::closed(const std::shared_ptr<Session>& session) {
  session->close();
  sessions_.erase(session);
  proceed();
}

// An answer may come from another thread, maybe after the connection or this server has gone: the
// session is looked for, never kept alive.
void AdminServer::Core::respond(Request request, const std::shared_ptr<Session>& session) {
  const Reply reply = [core = shared_from_this(),
                       waiting = std::weak_ptr(session)](Response answer) {
    asio::post(core->io(), [waiting, answer = std::move(answer)]() mutable {
      if (const auto found = waiting.lock()) found->write(std::move(answer));
    });
  };
  try {
    api_.handle(std::move(request), reply);
  } catch (const std::exception& error) {
    reply(error_response(500, "internal", error.what()));
  }
}

AdminServer::AdminServer(upstream::Directory& directory, upstream::ControlPort port, Warn warn)
    : api_(
          directory, std::move(port),
          [this](std::function<void()> work) { return aside_->take(std::move(work)); },
          std::move(warn)) {}

AdminServer::~AdminServer() { stop(); }

Result<config::Address> AdminServer::start(const config::Admin& admin) {
  auto core = std::make_shared<Core>(api_);
  auto bound = core->bind(admin.address);
  if (!bound) return bound;
  aside_ = std::make_unique<Aside>();
  config::Admin known = admin;
  known.address = *bound;
  api_.set_admin(std::move(known));
  core->start();
  core_ = std::move(core);
  return bound;
}

void AdminServer::stop() {
  if (core_) core_->stop();
  aside_.reset();  // what it still answers goes to a core that is there
  core_.reset();
}

}  // namespace clockwise::admin
