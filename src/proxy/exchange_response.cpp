// The exchange towards the client: the server's head, its body, and its end.
#include <boost/asio/error.hpp>
#include <limits>

#include "http/octets.h"
#include "proxy/exchange.h"
#include "proxy/scan_answer.h"
#include "proxy/session.h"

namespace clockwise::proxy {

void Exchange::on_server_read(const io::error_code& error, std::size_t n) {
  context_.loop.refresh();
  if (error) return on_server_end(error);
  target_->cells().received_bytes.add(n);
  if (answer_started_) return fetch_ ? fill(0) : relay_response_body();
  read_response_head();
}

void Exchange::on_server_readable(const io::error_code& error) {
  context_.loop.refresh();
  if (error) return on_server_end(error);
  if (splice_) run_splice();
}

void Exchange::on_server_writable(const io::error_code& error) {
  context_.loop.refresh();
  if (splice_ && !splice_->towards_client()) return run_splice();
  request_written(error ? Outbox::Result::failed : to_server_.flush(server_->stream()));
}

void Exchange::on_server_end(const io::error_code& error) {
  if (!answer_started_) {
    return fail(server_->stream().in().empty() ? Failure::reset : Failure::protocol);
  }
  // A reset is never the end of a body, even of one that the end of the stream ends.
  if (error != boost::asio::error::eof || !response_body_.end_of_stream()) {
    return cut_by_server(Failure::reset, "the server cut its answer");
  }
  server_keep_alive_ = false;
  if (fetch_) return fill(0);
  count_answer();
  context_.pieces.clear();
  context_.pieces.staying(response_writer_.after(0, true));
  response_written(to_client_.send(session_->client(), context_.pieces));
}

void Exchange::read_response_head() {
  io::Buffer& in = server_->stream().in();
  const auto& limits = session_->listener().config().limits;
  while (true) {
    switch (scan_answer(in, limits, method_, context_.response, response_scanned_)) {
      case http::Progress::refused:
        return fail(Failure::protocol);
      case http::Progress::incomplete:
        return server_->stream().read_soon();
      case http::Progress::complete:
        break;
    }
    response_scanned_ = 0;
    if (context_.response.status >= 200) {
      if (!refuse_answer()) begin_response();
      return;
    }
    if (!pass_interim()) return;
    if (in.empty()) return server_->stream().read_soon();
  }
}

// A 1xx: passed on to a client that knows what it is (RFC 9110 15.2); false when it ended the
// exchange.
bool Exchange::pass_interim() {
  io::Buffer& in = server_->stream().in();
  const http::ResponseHead& head = context_.response;
  if (!may_be_interim(head.status, ++interims_)) {
    fail(Failure::protocol);
    return false;
  }
  if (fetch_) {
    // Of the many who may wait only the one for whom it was asked hears of it. That it has gone, it
    // finds out by itself.
    if (fetch_->reader != nullptr) (void)fetch_->reader->relay_interim(in.view(), head);
    in.consume(head.size);
    return true;
  }
  const bool went_out = relay_interim(in.view(), head);
  in.consume(head.size);
  if (!went_out) client_left();
  return went_out;
}

// False: the client has gone.
bool Exchange::relay_interim(std::string_view octets, const http::ResponseHead& head) {
  Outbox::Result result = Outbox::Result::sent;
  if (minor_version_ >= 1) {
    context_.gather.clear();
    http::rewrite_interim(octets.substr(0, head.size), head, context_.gather);
    context_.pieces.begin_with(context_.gather.slices());
    const bool was_empty = to_client_.empty();
    result = to_client_.send(session_->client(), context_.pieces);
    session_->listener().cells().sent_bytes.add(to_client_.take_octets());
    if (result == Outbox::Result::blocked && was_empty) session_->client().wait_writable();
  }
  return result != Outbox::Result::failed;
}

void Exchange::answer_came() {
  io::Buffer& in = server_->stream().in();
  const http::ResponseHead& head = context_.response;
  status_ = head.status;
  end_trial(status_ < 500);
  from_cache_ = http::cache_answer(in.view().substr(0, head.size), head.fields);
  server_keep_alive_ = head.keep_alive && head.reusable;
  no_body_answer_ = method_ == http::Method::head || head.status == 204 || head.status == 304;
  response_body_.reset(head.body);
}

// Another server is not asked any more: this is the answer.
void Exchange::answer_counts() {
  answer_due_ = io::Deadlines::kNever;
  release_refused();
  end_hedge(metrics::Hedged::lost);
  if (view_->pool->config.hedge) note_latency();
}

void Exchange::begin_response() {
  if (fetch_) return begin_fill();
  answer_came();
  io::Buffer& in = server_->stream().in();
  const http::ResponseHead& head = context_.response;
  const http::BodyKind framing = client_framing(head.body.kind, minor_version_);
  response_writer_.reset(framing);
  // An answer before the request was read to its end: what follows on the wire is not a request.
  keep_alive_ = keep_alive_ && request_body_.done() && session_->may_go_on() &&
                framing != http::BodyKind::until_close;
  watch_due_ = io::Deadlines::kNever;

  http::ResponseContext to;
  to.client_minor_version = minor_version_;
  to.keep_alive = keep_alive_;
  to.body = {framing, head.body.length};
  to.head_or_no_body = no_body_answer_;
  to.date = context_.date();
  to.extra = own_lines();
  if (view_->cache.cache && view_->cache.cache->config.surrogate_control) hide_surrogate_control();
  context_.gather.clear();
  http::rewrite_response(in.view().substr(0, head.size), head, to, context_.gather);
  context_.pieces.begin_with(context_.gather.slices());
  response_octets_ = head.size;
  if (!add_response_body(head.size)) return fail(Failure::protocol);
  answer_started_ = true;
  answer_counts();
  phase_ = Phase::body;
  if (to_server_.empty() && !splice_) release_request_octets();
  response_written(to_client_.send(session_->client(), context_.pieces));
}

std::string_view Exchange::own_lines() {
  context_.text.clear();
  if (session_->listener().config().debug_headers) {
    context_.text.append("Clockwise-Server: ").append(target_->name()).append("\r\n");
    add_placement(context_.text);
  }
  if (asked_cache_) {
    see_invalidation();
    if (add_cache_status(context_.text)) count_cached();
  } else if (asked_pool_) {
    (void)add_cache_status(context_.text);
  }
  return context_.text;
}

// It is for us alone, where it is for us.
void Exchange::hide_surrogate_control() {
  const std::string_view octets = server_->stream().in().view();
  for (http::FieldLine& line : context_.response.fields)
    if (http::same_ignoring_case(http::name_of(octets, line), kSurrogateControl))
      line.hop_by_hop = true;
}

// Adds what stands in the server's buffer from `at` on to the pieces; false when its framing is
// bad.
bool Exchange::add_response_body(std::size_t at) {
  io::Buffer& in = server_->stream().in();
  const auto part = response_body_.read(in.data() + at, in.size() - at);
  if (part.state == BodyReader::State::bad) return false;
  response_octets_ += static_cast<std::uint32_t>(part.consumed);
  if (response_body_.done()) count_answer();
  add_content(part, response_writer_);
  return true;
}

void Exchange::relay_response_body() {
  context_.pieces.clear();
  if (!add_response_body(0))
    return cut_by_server(Failure::protocol, "the server's chunks are malformed");
  response_written(to_client_.send(session_->client(), context_.pieces));
}

// Those that have gone to the client since the last call.
void Exchange::count_octets() {
  const std::size_t octets = to_client_.take_octets();
  session_->listener().cells().sent_bytes.add(octets);
  sent_to_client_ += octets;
}

void Exchange::response_written(Outbox::Result result) {
  count_octets();
  switch (result) {
    case Outbox::Result::failed:
      return client_left();
    case Outbox::Result::blocked:
      session_->client().wait_writable();
      if (!answer_started_ && phase_ != Phase::replying) return;  // a 1xx may wait
      return answer_awaits(Side::client);
    case Outbox::Result::sent:
      break;
  }
  if (phase_ == Phase::replying) return finish();
  if (!answer_started_) return;  // a 1xx is out; the answer is still to come
  response_progress();
}

// All that was read has been sent.
void Exchange::response_progress() {
  io::Stream& server = server_->stream();
  server.in().consume(response_octets_);
  response_octets_ = 0;
  if (response_body_.done()) {
    const bool reusable = server_is_reusable();
    count_answer();
    release_server(reusable);
    return finish();
  }
  if (!splice_ && try_splice(response_body_, server, session_->client(), true)) return;
  server.release_empty_block();
  server.read_soon();
  answer_awaits(Side::server);
}

// Octets beyond the answer belong to nobody: that connection is not used again. Where a read took
// all that it had room for, or a splice all that it wanted, there may be more.
bool Exchange::server_is_reusable() {
  io::Stream& server = server_->stream();
  return server_keep_alive_ && server.in().empty() && request_body_.done() && to_server_.empty() &&
         !server_failed_writing_ && (server.drained() || !server.has_news());
}

// Who must make the next move for the answer to go on.
void Exchange::answer_awaits(Side side) {
  if (side == Side::server) {
    // Nothing is written while the server is silent, so only a read tells that the client has gone.
    if (request_body_.done() && !session_->client().reading()) watch_client();
    return await(side, view_->pool->config.timeouts.response);
  }
  unsent_ = std::numeric_limits<std::size_t>::max();
  await_client();
}

}  // namespace clockwise::proxy
