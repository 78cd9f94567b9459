#include "proxy/session.h"

#include <algorithm>
#include <boost/asio/error.hpp>

#include "proxy/exchange.h"

namespace clockwise::proxy {
namespace {

// After an answer that ends the connection while the client still sends: read on for a while, or
// the kernel's reset would destroy the answer on its way (RFC 9112 section 9.6). Many clients look
// for an answer only after their last octet.
constexpr io::Milliseconds kLingerSilence = 2'000;
constexpr io::Milliseconds kLingerInAll = 30'000;

// How long a connection that is idle when the drain begins may still bring a request: one that is
// on its way must be answered, not reset.
constexpr io::Milliseconds kDrainGrace = 1'000;

io::Milliseconds ms(std::chrono::milliseconds duration) noexcept {
  return static_cast<io::Milliseconds>(duration.count());
}

}  // namespace

Session::Session(Listener& listener, int family, int descriptor, std::string_view client_ip,
                 bool counted)
    : Client(client_ip, counted),
      listener_(listener),
      client_(io::make_stream(listener.context().loop, *this, family, descriptor)),
      trusted_(listener.trusts(client_ip)),
      has_client_(true) {}

Session::Session(Listener& listener, std::string_view client_ip, bool trusted)
    : Client(client_ip, false),
      listener_(listener),
      client_(io::make_stream(listener.context().loop, *this)),
      trusted_(trusted),
      has_client_(false) {
  client_->close();
}

void Session::start_fetch(std::string_view request, Fetch fetch) {
  Context& context = listener_.context();
  put_request(request);
  constexpr http::HeadLimits kNone{.size = UINT32_MAX, .fields = UINT32_MAX};
  const auto progress = http::scan_request(client_->in().view(), kNone, context.request, scanned_);
  head_started_ns_ = context.loop.now_ns();
  state_ = State::exchange;
  exchange_ = &context.take_exchange();
  if (progress == http::Progress::complete) return exchange_->fetch(*this, std::move(fetch));
  exchange_->refuse_fetch(*this, std::move(fetch));
}

void Session::put_request(std::string_view request) {
  io::Buffer& in = client_->in();
  in.clear();
  in.reserve(request.size());
  char* const place = in.tail();
  std::ranges::copy(request, place);
  in.commit(place, request.size());
}

void Session::start() {
  now_idle();
  const config::ListenerTimeouts& timeouts = listener_.config().timeouts;
  wait_for_octets(ms(timeouts.first_byte.value_or(timeouts.header)));
}

void Session::become(State to) noexcept {
  if (state_ == to) return;
  if (!has_client_) {
    state_ = to;
    return;
  }
  metrics::ListenerCells& cells = listener_.cells();
  if (IdleLink::is_linked()) IdleLink::unlink();
  if (state_ == State::idle) {
    cells.connections_idle.sub();
  } else if (state_ != State::gone) {
    cells.connections_active.sub();
  }
  if (to == State::idle) {
    now_idle();
  } else if (to != State::gone) {
    cells.connections_active.add();
  }
  state_ = to;
}

void Session::now_idle() noexcept {
  listener_.cells().connections_idle.add();
  head_started_ns_ = listener_.context().loop.now_ns();
  listener_.now_idle(*this, requests_ == 0);
}

void Session::set_deadline(io::Milliseconds at) noexcept {
  listener_.context().loop.deadlines.set(*this, at);
}

void Session::wait_for_request() {
  become(State::idle);
  scanned_ = 0;
  client_->release_empty_block();
  wait_for_octets(ms(listener_.config().timeouts.idle));
}

void Session::wait_for_octets(io::Milliseconds patience) {
  client_->read_soon();
  set_deadline(listener_.context().loop.now() + (listener_.draining() ? kDrainGrace : patience));
}

void Session::on_read(const io::error_code& error, std::size_t n) {
  listener_.cells().received_bytes.add(n);
  switch (state_) {
    case State::exchange:
      return exchange_->on_client_read(error, n);
    case State::lingering:
      return drain_lingering(error);
    case State::gone:
      return;
    case State::idle:
      if (!error && only_blank_lines()) return client_->read_soon();
      break;
    case State::head:
      break;
  }
  if (error) return leave(false);
  read_head();
}

// Before a request they are skipped (RFC 9112 2.2); they are none, so the wait goes on as it was.
bool Session::only_blank_lines() {
  io::Buffer& in = client_->in();
  in.consume(http::leading_blank_lines(in.view()));
  client_->release_empty_block();
  return in.empty() || in.view() == "\r";
}

void Session::on_readable(const io::error_code& error) {
  if (exchange_ != nullptr) return exchange_->on_client_readable(error);
  if (state_ == State::idle && !client_->in().empty()) read_head();  // from go_on_next_turn()
}

void Session::on_writable(const io::error_code& error) {
  if (exchange_ != nullptr) exchange_->on_client_writable(error);
}

// Serves the requests that stand in the buffer, one after another: an exchange that ends at once
// leaves the state idle and the loop goes on; one that waits comes back through exchange_done().
void Session::read_head() {
  Context& context = listener_.context();
  std::uint32_t answered = 0;
  reading_heads_ = true;
  do {
    io::Buffer& in = client_->in();
    in.consume(http::leading_blank_lines(in.view()));
    if (in.empty()) {
      wait_for_request();
      break;
    }
    const auto& limits = listener_.config().limits;
    if (answered++ == limits.pipelined) {
      go_on_next_turn();
      break;
    }
    if (state_ == State::idle) {
      become(State::head);
      head_started_ns_ = context.loop.refresh();
    }
    const auto progress =
        http::scan_request(in.view(), {limits.header_size, limits.headers, limits.uri_size},
                           context.request, scanned_);
    if (progress == http::Progress::incomplete) {
      wait_for_more_head();
      break;
    }
    scanned_ = 0;
    ++requests_;
    become(State::exchange);
    exchange_ = &context.take_exchange();
    if (progress == http::Progress::complete) {
      exchange_->start(*this);
    } else {
      exchange_->refuse(*this);
    }
  } while (state_ == State::idle);
  reading_heads_ = false;
}

void Session::wait_for_more_head() {
  io::Buffer& in = client_->in();
  if (in.full()) in.reserve(listener_.config().limits.header_size + std::size_t{1});
  client_->read_soon();
  const config::ListenerTimeouts& timeouts = listener_.config().timeouts;
  io::Milliseconds patience = ms(timeouts.header);
  if (timeouts.request.count() != 0) patience = std::min(patience, ms(timeouts.request));
  set_deadline(head_started_ns_ / 1'000'000 + patience);
}

// One client's pipeline must not hold up the others: the rest of it waits in the buffer.
void Session::go_on_next_turn() {
  client_->readable_soon();
  set_deadline(listener_.context().loop.now() + ms(listener_.config().timeouts.idle));
}

void Session::exchange_done(bool keep, bool clean) {
  exchange_ = nullptr;
  if (!has_client_) return leave(false);
  if (keep) {
    become(State::idle);
    if (reading_heads_) return;  // the loop in read_head() goes on
    if (!client_->in().empty()) return read_head();
    return wait_for_request();
  }
  if (clean && client_->in().empty() && !client_->has_news()) return leave(false);
  linger();
}

void Session::exchange_cut(bool as_error) {
  exchange_ = nullptr;
  leave(as_error);
}

void Session::linger() {
  become(State::lingering);
  client_->shutdown_send();
  client_->in().clear();
  client_->read_soon();
  head_started_ns_ = listener_.context().loop.now_ns();
  listener_.now_lingering(*this);
  const io::Milliseconds now = listener_.context().loop.now();
  linger_until_ = now + kLingerInAll;
  set_deadline(now + kLingerSilence);
}

void Session::drain_lingering(const io::error_code& error) {
  client_->in().clear();
  if (error) return leave(false);
  client_->read_soon();
  set_deadline(
      std::min(linger_until_, listener_.context().loop.refresh() / 1'000'000 + kLingerSilence));
}

void Session::on_deadline() {
  Context& context = listener_.context();
  switch (state_) {
    case State::exchange:
      return exchange_->on_deadline(context.loop.now());
    case State::head:
      become(State::exchange);
      exchange_ = &context.take_exchange();
      return exchange_->time_out_head(*this);
    case State::idle:
    case State::lingering:
      return leave(false);
    case State::gone:
      return;
  }
}

void Session::drain() {
  if (!has_client_ && exchange_ != nullptr) return exchange_->on_drain();
  if (state_ == State::idle) set_deadline(listener_.context().loop.now() + kDrainGrace);
}

// A read that waits owns no block; one that has one may be about to bring a request.
bool Session::close_if_unused() {
  if (state_ == State::idle && (client_->in().has_block() || client_->has_news())) return false;
  leave(false);
  return true;
}

void Session::drop() {
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->abandon();
  leave(true);
}

void Session::leave(bool as_error) {
  if (state_ == State::gone) return;
  become(State::gone);
  listener_.context().loop.deadlines.clear(*this);
  if (as_error) {
    client_->reset();
  } else {
    client_->close();
  }
  listener_.leave(*this);  // buries this session: nothing of it may be touched after its event
}

}  // namespace clockwise::proxy
