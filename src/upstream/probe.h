// One active check: a request of ours to one server, on a connection of its own, and whether the
// answer is what the pool's `health` asks for.
//
// Belongs to the thread that runs its io_context. Bounded: the whole check, connecting included,
// takes no longer than `timeout`, and of an answer no more than 64 KiB is looked at.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/model.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

class Probe : public std::enable_shared_from_this<Probe> {
 public:
  // `why` it failed, for the log: "status 503". Called once, unless the probe was cancelled.
  using Done = std::function<void(bool passed, std::string why)>;

  // The addresses of the server are tried one after another until one takes the connection.
  // One of memcached is asked for its version.
  Probe(boost::asio::io_context& io, const Server& server, const config::Health& rules,
        config::Protocol protocol, Done done);

  void start();
  void cancel();

 private:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;
  using Error = boost::system::error_code;

  void connect_next(const Error& last);
  void send();
  void read_version();
  void on_version(const Error& error);
  void read_head();
  void on_head();
  void read_body();
  void on_body(const Error& error);
  void finish(bool passed, std::string why);
  void close();

  const config::Health rules_;
  const config::Protocol protocol_;
  std::vector<Endpoint> endpoints_;
  std::size_t next_endpoint_ = 0;
  std::string request_;
  Done done_;
  Socket socket_;
  boost::asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::string body_;
  std::size_t body_read_ = 0;
};

// What is sent: `address` is the server's.
[[nodiscard]] std::string check_request(const config::Health& rules,
                                        const config::Address& address);

}  // namespace clockwise::upstream
