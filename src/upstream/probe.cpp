#include "upstream/probe.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <utility>

namespace clockwise::upstream {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr std::size_t kMostBody = 64 * 1024;
constexpr std::uint32_t kMostHead = 64 * 1024;

constexpr const char* kNoMatch = "the body does not hold what it should";

void set_port(Endpoint& endpoint, std::uint16_t port) {
  if (endpoint.protocol().family() == AF_INET)
    reinterpret_cast<sockaddr_in*>(endpoint.data())->sin_port = htons(port);
  else if (endpoint.protocol().family() == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(endpoint.data())->sin6_port = htons(port);
}

std::string host_of(const config::Health& rules, const config::Address& address) {
  if (!rules.host.empty()) return rules.host;
  if (address.is_unix()) return "localhost";
  if (rules.port == 0) return address.text;
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, rules.port)
            : fmt::format("{}:{}", address.host, rules.port);
}

bool passes(const config::Health& rules, unsigned status) {
  return std::ranges::any_of(rules.status, [&](const config::StatusRange& range) {
    return status >= range.first && status <= range.last;
  });
}

}  // namespace

std::string check_request(const config::Health& rules, const config::Address& address) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: clockwise\r\nAccept: */*\r\n"
      "Connection: close\r\n\r\n",
      rules.method, rules.path, host_of(rules, address));
}

Probe::Probe(asio::io_context& io, const Server& server, const config::Health& rules,
             config::Protocol protocol, Done done)
    : rules_(rules),
      protocol_(protocol),
      endpoints_(server.endpoints),
      request_(protocol == config::Protocol::memcached
                   ? "version\r\n"
                   : check_request(rules, server.config.address)),
      done_(std::move(done)),
      socket_(io),
      deadline_(io),
      buffer_(kMostHead + kMostBody) {
  if (rules.port != 0)
    for (Endpoint& endpoint : endpoints_) set_port(endpoint, rules.port);
}

void Probe::start() {
  deadline_.expires_after(rules_.timeout);
  deadline_.async_wait([self = shared_from_this()](const Error& stopped) {
    if (!stopped)
      self->finish(false, fmt::format("no answer in {} ms", self->rules_.timeout.count()));
  });
  if (endpoints_.empty()) return finish(false, "its name has no address");
  connect_next({});
}

void Probe::cancel() {
  done_ = nullptr;
  close();
}

void Probe::connect_next(const Error& last) {
  if (next_endpoint_ >= endpoints_.size()) return finish(false, "no connection: " + last.message());
  Error ignored;
  socket_.close(ignored);
  socket_.async_connect(endpoints_[next_endpoint_++],
                        [self = shared_from_this()](const Error& error) {
                          if (!self->done_) return;
                          error ? self->connect_next(error) : self->send();
                        });
}

void Probe::send() {
  asio::async_write(
      socket_, asio::buffer(request_), [self = shared_from_this()](const Error&, std::size_t) {
        // Also after an error: it may have answered before it closed.
        if (!self->done_) return;
        self->protocol_ == config::Protocol::memcached ? self->read_version() : self->read_head();
      });
}

void Probe::read_version() {
  asio::async_read_until(socket_, asio::dynamic_buffer(body_, kMostHead), '\n',
                         [self = shared_from_this()](const Error& error, std::size_t) {
                           if (self->done_) self->on_version(error);
                         });
}

void Probe::on_version(const Error& error) {
  if (error) return finish(false, "no answer: " + error.message());
  if (body_.starts_with("VERSION ")) return finish(true, {});
  finish(false, "it does not tell its version");
}

void Probe::read_head() {
  parser_.emplace();
  parser_->header_limit(kMostHead);
  parser_->body_limit(boost::none);
  parser_->skip(rules_.method == "HEAD");
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](const Error& error, std::size_t) {
                            if (!self->done_) return;
                            if (error)
                              return self->finish(false, "no HTTP answer: " + error.message());
                            self->on_head();
                          });
}

void Probe::on_head() {
  const unsigned status = parser_->get().result_int();
  if (status < 200) return read_head();  // an interim answer; the final one follows
  if (!passes(rules_, status)) return finish(false, fmt::format("status {}", status));
  if (rules_.body.empty()) return finish(true, {});
  if (parser_->is_done()) return finish(false, kNoMatch);
  body_.resize(kMostBody);
  read_body();
}

void Probe::read_body() {
  auto& body = parser_->get().body();
  body.data = body_.data() + body_read_;
  body.size = body_.size() - body_read_;
  http::async_read_some(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](const Error& error, std::size_t) { self->on_body(error); });
}

void Probe::on_body(const Error& error) {
  if (!done_) return;
  body_read_ = body_.size() - parser_->get().body().size;
  if (std::string_view(body_).substr(0, body_read_).find(rules_.body) != std::string_view::npos)
    return finish(true, {});
  if (error && error != http::error::need_buffer)
    return finish(false, "the answer was cut: " + error.message());
  if (!parser_->is_done() && body_read_ < body_.size()) return read_body();
  finish(false, kNoMatch);
}

void Probe::finish(bool passed, std::string why) {
  const Done done = std::exchange(done_, nullptr);
  close();
  if (done) done(passed, std::move(why));
}

void Probe::close() {
  Error ignored;
  deadline_.cancel();
  socket_.close(ignored);
}

}  // namespace clockwise::upstream
