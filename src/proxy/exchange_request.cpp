// The exchange towards the server: head, body, and what may be read from the client meanwhile.
#include "proxy/exchange.h"
#include "proxy/session.h"

namespace clockwise::proxy {

using metrics::RequestError;

namespace {

// The configuration and the head writer know nothing of each other.
http::ForwardedStyle style_of(config::ForwardedStyle style) noexcept {
  switch (style) {
    case config::ForwardedStyle::forwarded:
      return http::ForwardedStyle::forwarded;
    case config::ForwardedStyle::off:
      return http::ForwardedStyle::off;
    case config::ForwardedStyle::x_forwarded_for:
      break;
  }
  return http::ForwardedStyle::x_forwarded_for;
}

}  // namespace

void Exchange::on_server_connected(const io::error_code& error) {
  context_.loop.refresh();
  if (error) return fail(connect_failure(error));
  rescan_head();
  send_request();
}

// The worker's scratch has served other requests meanwhile. The octets are the same, and so is what
// the scanner says about them; the limits may have been lowered by a reload, and no longer count.
void Exchange::rescan_head() {
  constexpr http::HeadLimits kNone{.size = UINT32_MAX, .fields = UINT32_MAX};
  std::size_t scanned = 0;
  (void)http::scan_request(session_->client().in().view().substr(0, head_size_), kNone,
                           context_.request, scanned);
}

// REQUIRES: Context::request is this request's head.
void Exchange::send_request() {
  phase_ = Phase::sending;
  const http::RequestHead& head = context_.request;
  request_body_.reset(head.body);
  request_writer_.reset(head.body.kind);
  write_request_head(*target_);
  request_octets_ = head_size_;
  if (!add_request_body(head_size_)) return;
  replayable_ = request_body_.done() && head.body.kind != http::BodyKind::chunked;
  request_written(to_server_.send(server_->stream(), context_.pieces));
}

// The head as `target` gets it, into Context::pieces. REQUIRES: Context::request is this request's
// head.
void Exchange::write_request_head(const upstream::ServerConnections& target) {
  Session& session = *session_;
  http::RequestContext to;
  to.client_ip = session.client_ip();
  to.trusted = session.trusted();
  to.style = style_of(session.listener().config().forwarded.by);
  to.request_id = own_id();
  to.fallback_host = target.address();
  if (to.fallback_host.starts_with("unix:")) to.fallback_host = "localhost";
  context_.gather.clear();
  http::rewrite_request(session.client().in().view().substr(0, head_size_), context_.request, to,
                        context_.gather);
  context_.pieces.begin_with(context_.gather.slices());
}

// Adds what stands in the client's buffer from `at` on to the pieces; false when that ended the
// exchange.
bool Exchange::add_request_body(std::size_t at) {
  io::Buffer& in = session_->client().in();
  const auto part = request_body_.read(in.data() + at, in.size() - at);
  if (part.state == BodyReader::State::bad) {
    request_body_bad(request_body_.error());
    return false;
  }
  const std::uint64_t limit = session_->listener().config().limits.body_size;
  if (limit != 0 && request_body_.octets() > limit) {
    body_too_large();
    return false;
  }
  request_octets_ += static_cast<std::uint32_t>(part.consumed);
  add_content(part, request_writer_);
  return true;
}

void Exchange::request_written(Outbox::Result result) {
  const std::size_t octets = to_server_.take_octets();
  target_->cells().sent_bytes.add(octets);
  request_written_ |= octets > 0;
  if (!answer_started_) server_->stream().read_soon();  // it may answer before it has read all
  switch (result) {
    case Outbox::Result::failed:
      // It may have answered before it stopped reading; that answer counts, but what a kept
      // connection brought before its next request belongs to none.
      server_failed_writing_ = true;
      if (!request_written_ && server_->reused()) return fail(Failure::reset);
      return request_awaits(Side::server);
    case Outbox::Result::blocked:
      server_->stream().wait_writable();
      return request_awaits(Side::server);
    case Outbox::Result::sent:
      break;
  }
  if (request_body_.done()) return request_sent();
  replayable_ = false;
  release_request_octets();
  if (!session_->client().in().empty()) return relay_request_body();  // came before its turn
  if (try_splice(request_body_, session_->client(), server_->stream(), false)) return;
  session_->client().read_soon();
  request_awaits(Side::client);
}

// Who must make the next move for the request to go on. Once the answer has begun, only the answer
// is watched: a server that answers need not read, and a client that is answered need not send.
void Exchange::request_awaits(Side side) {
  if (answer_started_) return;
  await(side, side == Side::server ? view_->pool->config.timeouts.response
                                   : session_->listener().config().timeouts.body);
}

void Exchange::request_sent() {
  if (answer_started_) return release_request_octets();
  phase_ = Phase::head;
  watch_client();
  request_awaits(Side::server);
}

void Exchange::relay_request_body() {
  io::Buffer& in = session_->client().in();
  if (server_failed_writing_ || server_ == nullptr) return in.clear();
  restart_total();
  context_.pieces.clear();
  request_octets_ = 0;
  if (!add_request_body(0)) return;
  request_written(to_server_.send(server_->stream(), context_.pieces));
}

// The server must never take what it got for a whole request: its connection is closed, no last
// chunk is sent.
void Exchange::request_body_bad(std::string_view why) {
  stop_request(400, RequestError::framing, why);
}

void Exchange::body_too_large() {
  stop_request(413, RequestError::body_too_large, "the request body is larger than the limit");
}

void Exchange::stop_request(unsigned status, RequestError error, std::string_view why) {
  metrics::at(session_->listener().cells().request_errors, error).add();
  if (answer_started_) return cut(why);
  drop_server();
  to_server_.clear();
  keep_alive_ = false;
  reply(status, {}, why);
}

// What was sent, or will never be sent again, leaves the client's buffer.
void Exchange::release_request_octets() {
  if (request_octets_ == 0) return;
  io::Stream& client = session_->client();
  client.in().consume(request_octets_);
  request_octets_ = 0;
  client.release_empty_block();
}

}  // namespace clockwise::proxy
