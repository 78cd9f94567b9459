#include "cli/admin_client.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/parse.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <optional>
#include <vector>

#include "cli/json_at.h"
#include "cli/within.h"
#include "config/values.h"

namespace clockwise::cli {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Endpoint = asio::generic::stream_protocol::endpoint;

struct Peer {
  std::string host;  // as the Host field has it
  std::vector<Endpoint> endpoints;
};

Result<Peer> unix_peer(std::string_view path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(fmt::format("unix:{} is not the path of a socket", path));
  return Peer{"localhost", {asio::local::stream_protocol::endpoint(std::string(path))}};
}

Result<std::vector<Endpoint>> resolve(const std::string& host, const std::string& port) {
  asio::io_context io{1};
  error_code ec;
  const auto found =
      asio::ip::tcp::resolver(io).resolve(host, port, asio::ip::tcp::resolver::numeric_service, ec);
  if (ec) return fail(fmt::format("cannot resolve {}: {}", host, ec.message()));
  std::vector<Endpoint> endpoints;
  for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
  return endpoints;
}

Result<Peer> find_peer(const std::string& url, std::chrono::milliseconds longest) {
  constexpr std::string_view kUnix = "unix:";
  if (url.starts_with(kUnix)) return unix_peer(std::string_view(url).substr(kUnix.size()));

  const std::string text = url.find("://") == std::string::npos ? "http://" + url : url;
  const auto parsed = boost::urls::parse_uri(text);
  if (!parsed || parsed->scheme() != "http" || parsed->host().empty())
    return fail(fmt::format("\"{}\" is not an admin address: http://HOST:PORT or unix:/PATH", url));

  const std::string port = parsed->port().empty() ? "80" : std::string(parsed->port());
  if (!config::parse_integer(port, 1, 65'535))
    return fail(fmt::format("\"{}\" is not an admin address: a port is 1 to 65535", url));
  const std::string host = parsed->host_address();
  auto endpoints = within(longest, [host, port] { return resolve(host, port); });
  if (!endpoints)
    return fail(fmt::format("cannot resolve {}: no answer within {} ms", host, longest.count()));
  if (!*endpoints) return endpoints->error();
  return Peer{std::string(parsed->encoded_host_and_port()), **std::move(endpoints)};
}

// One connection, used from top to bottom: each step starts an operation and runs the loop until it
// has ended, at the latest when its deadline passes.
class Exchange {
 public:
  Exchange(asio::io_context& io, const AdminCall& call, Clock::time_point end)
      : io_(io), call_(call), end_(end), stream_(io) {}

  error_code connect(const std::vector<Endpoint>& endpoints) {
    error_code ec = asio::error::host_not_found;
    for (const Endpoint& endpoint : endpoints) {
      expire_after(call_.connect_timeout);
      ec = finish([&](auto done) { stream_.async_connect(endpoint, done); });
      if (!ec) return ec;
      stream_.close();
    }
    return ec;
  }

  error_code send(const std::string& host) {
    http::request<http::empty_body> request(http::string_to_verb(call_.method), call_.target, 11);
    request.set(http::field::host, host);
    request.set(http::field::accept, "application/json");
    request.set(http::field::connection, "close");
    if (!call_.token.empty()) request.set(http::field::authorization, "Bearer " + call_.token);
    request.prepare_payload();
    expire_after(call_.answer_timeout);
    return finish([&](auto done) {
      http::async_write(stream_, request, [done](error_code ec, std::size_t) { done(ec); });
    });
  }

  error_code receive(AdminAnswer& answer) {
    constexpr std::uint64_t kMaxAnswer = 1ULL << 30;
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxAnswer);
    const error_code ec = finish([&](auto done) {
      http::async_read(stream_, buffer, parser, [done](error_code e, std::size_t) { done(e); });
    });
    if (ec) return ec;
    answer.status = parser.get().result_int();
    answer.body = std::move(parser.get().body());
    return ec;
  }

 private:
  void expire_after(std::chrono::seconds step) {
    stream_.expires_at(std::min<Clock::time_point>(Clock::now() + step, end_));
  }

  template <class Start>
  error_code finish(Start start) {
    error_code result;
    start([&result](error_code ec) { result = ec; });
    io_.restart();
    io_.run();
    return result;
  }

  asio::io_context& io_;
  const AdminCall& call_;
  const Clock::time_point end_;
  beast::basic_stream<asio::generic::stream_protocol> stream_;
};

}  // namespace

Result<AdminAnswer> call_admin(const std::string& url, const AdminCall& call) {
  const auto end = call.deadline ? Clock::now() + *call.deadline : Clock::time_point::max();
  auto peer = find_peer(url, std::min(call.deadline.value_or(call.connect_timeout),
                                      std::chrono::milliseconds(call.connect_timeout)));
  if (!peer) return peer.error();
  asio::io_context io{1};
  Exchange exchange(io, call, end);
  if (const error_code ec = exchange.connect(peer->endpoints))
    return fail(fmt::format("cannot reach the proxy at {}: {}", url, ec.message()));
  AdminAnswer answer;
  error_code ec = exchange.send(peer->host);
  if (!ec) ec = exchange.receive(answer);
  if (ec) return fail(fmt::format("no answer from the proxy at {}: {}", url, ec.message()));
  return answer;
}

Error no_proxy(const std::string& url, std::string_view why) {
  return fail(fmt::format("{} is not the admin address of a proxy: {}", url, why));
}

Result<boost::json::object> object_of(const std::string& url, const AdminAnswer& answer) {
  error_code malformed;
  boost::json::value document = boost::json::parse(answer.body, malformed);
  if (malformed || !document.is_object())
    return no_proxy(url, fmt::format("status {}, and no JSON object", answer.status));
  return std::move(document.get_object());
}

Result<boost::json::object> ask_admin(const std::string& url, const AdminCall& call) {
  const auto answer = call_admin(url, call);
  if (!answer) return answer.error();
  auto object = object_of(url, *answer);
  if (!object || answer->status == 200) return object;
  const std::string message = text_at(object_at(*object, "error"), "message");
  return fail(fmt::format("{} answers {}: {}", url, answer->status, message));
}

}  // namespace clockwise::cli
