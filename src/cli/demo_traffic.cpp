#include "cli/demo_traffic.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/completion_condition.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

namespace clockwise::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kMaxAnswer = 65536;
constexpr std::string_view kEndOfHead = "\r\n\r\n";

// Octets of the body that a head announces.
std::size_t content_length(std::string_view head) {
  constexpr std::string_view kField = "\r\nContent-Length: ";
  const std::size_t field = head.find(kField);
  std::size_t length = 0;
  if (field != std::string_view::npos) {
    const char* begin = head.data() + field + kField.size();
    std::from_chars(begin, head.data() + head.size(), length);
  }
  return length;
}

// One request on an open connection: the name in the answer, or nothing when it failed.
asio::awaitable<std::optional<std::string>> ask(tcp::socket& socket, std::string target) {
  const std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: demo.test\r\nUser-Agent: clockwise-demo\r\n\r\n", target);
  const auto bytes = asio::buffer(request);
  auto written = co_await asio::async_write(socket, bytes, kTuple);
  if (std::get<0>(written)) co_return std::nullopt;

  std::string answer;
  auto buffer = asio::dynamic_buffer(answer, kMaxAnswer);
  auto head = co_await asio::async_read_until(socket, buffer, kEndOfHead, kTuple);
  const auto& [head_error, head_size] = head;
  if (head_error) co_return std::nullopt;

  const std::size_t size =
      head_size + content_length(std::string_view(answer).substr(0, head_size));
  if (size > answer.size()) {
    const auto rest = asio::transfer_exactly(size - answer.size());
    auto body = co_await asio::async_read(socket, buffer, rest, kTuple);
    if (std::get<0>(body)) co_return std::nullopt;
  }
  if (!answer.starts_with("HTTP/1.1 200 ")) co_return std::nullopt;
  std::string name = answer.substr(head_size);
  while (name.ends_with('\n')) name.pop_back();
  co_return name;
}

// One client for the life of the demo; a broken connection is a failure and is opened anew.
asio::awaitable<void> run_client(DemoTraffic& traffic, tcp::endpoint proxy, unsigned seed,
                                 std::chrono::nanoseconds pause) {
  std::minstd_rand random(seed);
  std::uniform_int_distribution<unsigned> pick(0, DemoTraffic::kKeys - 1);
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  tcp::socket socket(executor);
  auto next = std::chrono::steady_clock::now() + pause * seed / DemoTraffic::kClients;
  for (;; next += pause) {
    timer.expires_at(next);
    co_await timer.async_wait(kTuple);
    if (!socket.is_open()) {
      auto connected = co_await socket.async_connect(proxy, kTuple);
      if (std::get<0>(connected)) {
        traffic.count_failure();
        socket.close();
        continue;
      }
    }
    const unsigned number = pick(random);
    std::string target = DemoTraffic::key(number);
    auto asking = ask(socket, std::move(target));
    std::optional<std::string> server = co_await std::move(asking);
    if (server) {
      traffic.count(number, std::move(*server));
    } else {
      traffic.count_failure();
      socket.close();
    }
  }
}

}  // namespace

DemoTraffic::DemoTraffic(std::uint16_t port, unsigned requests_per_second)
    : port_(port),
      pause_(std::chrono::nanoseconds(std::chrono::seconds(kClients)) / requests_per_second) {}

DemoTraffic::~DemoTraffic() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

void DemoTraffic::start() {
  const tcp::endpoint proxy(asio::ip::address_v4::loopback(), port_);
  for (unsigned seed = 1; seed <= kClients; ++seed) {
    auto client = run_client(*this, proxy, seed, pause_);
    asio::co_spawn(io_, std::move(client), asio::detached);
  }
  thread_ = std::thread([this] { io_.run(); });
}

std::string DemoTraffic::key(unsigned number) { return fmt::format("/object/{}", number); }

DemoTraffic::Owners DemoTraffic::take_owners() {
  const std::lock_guard lock(mutex_);
  return std::exchange(owners_, Owners{});
}

void DemoTraffic::count(unsigned key_number, std::string server) {
  ++answered_;
  const std::lock_guard lock(mutex_);
  owners_.at(key_number) = std::move(server);
}

}  // namespace clockwise::cli
