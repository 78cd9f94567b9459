#include "cli/demo_origins.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

namespace clockwise::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Origin = DemoOrigins::Origin;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kMaxHead = 65536;
constexpr std::string_view kEndOfHead = "\r\n\r\n";

std::string answer_of(const Origin& origin) {
  const std::string body = origin.name + '\n';
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=60\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
}

// Requests with a body are beyond this server: the traffic of the demo has none.
asio::awaitable<void> serve(tcp::socket socket, Origin& origin) {
  const std::string answer = answer_of(origin);
  const auto bytes = asio::buffer(answer);
  std::string unread;
  auto buffer = asio::dynamic_buffer(unread, kMaxHead);
  for (;;) {
    auto read = co_await asio::async_read_until(socket, buffer, kEndOfHead, kTuple);
    const auto& [read_error, size] = read;
    if (read_error) co_return;
    unread.erase(0, size);
    ++origin.requests;
    auto written = co_await asio::async_write(socket, bytes, kTuple);
    if (std::get<0>(written)) co_return;
  }
}

asio::awaitable<void> accept_all(tcp::acceptor& acceptor, Origin& origin) {
  for (;;) {
    auto accepted = co_await acceptor.async_accept(kTuple);
    auto& [error, socket] = accepted;
    if (error) continue;
    auto session = serve(std::move(socket), origin);
    asio::co_spawn(acceptor.get_executor(), std::move(session), asio::detached);
  }
}

}  // namespace

Result<void> DemoOrigins::add(const std::string& name) try {
  tcp::acceptor acceptor(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  Origin& origin = origins_.emplace_back();
  origin.name = name;
  origin.port = acceptor.local_endpoint().port();
  acceptors_.push_back(std::move(acceptor));
  return {};
} catch (const boost::system::system_error& e) {
  return fail(fmt::format("no port for {}: {}", name, e.code().message()));
}

void DemoOrigins::start() {
  for (std::size_t i = 0; i < origins_.size(); ++i) {
    auto accepting = accept_all(acceptors_[i], origins_[i]);
    asio::co_spawn(io_, std::move(accepting), asio::detached);
  }
  thread_ = std::thread([this] { io_.run(); });
}

DemoOrigins::~DemoOrigins() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

std::vector<std::uint16_t> DemoOrigins::ports() const {
  std::vector<std::uint16_t> ports;
  ports.reserve(origins_.size());
  for (const Origin& origin : origins_) ports.push_back(origin.port);
  return ports;
}

std::uint64_t DemoOrigins::requests_at(const std::string& address) const {
  for (const Origin& origin : origins_)
    if (address == fmt::format("127.0.0.1:{}", origin.port)) return origin.requests;
  return 0;
}

}  // namespace clockwise::cli
