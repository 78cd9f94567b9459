#include "proxy/hedge.h"

#include "proxy/context.h"
#include "proxy/scan_answer.h"

namespace clockwise::proxy {

void HedgeClock::set(Place& place, std::chrono::nanoseconds after) {
  place.due_ns_ = loop_.now_ns() + static_cast<std::uint64_t>(after.count());
  queue_.join(place);
  if (!running_) start_timer();
}

void HedgeClock::start_timer() {
  if (stopped_) return;
  running_ = true;
  const auto& first = static_cast<Place&>(queue_.first());
  using Clock = std::chrono::steady_clock;
  timer_.expires_at(Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(first.due_ns_))));
  timer_.async_wait([this](const io::error_code& error) {
    running_ = false;
    if (!error) ring();
  });
}

// Whoever was answered has left; the timer is not moved for that.
void HedgeClock::ring() {
  const std::uint64_t now = loop_.refresh();
  while (!queue_.empty()) {
    auto& first = static_cast<Place&>(queue_.first());
    if (first.due_ns_ > now) return start_timer();
    queue_.leave(first);
    first.on_late();
  }
}

void HedgeClock::stop() {
  stopped_ = true;
  timer_.cancel();
}

Hedge::Hedge(Context& context, Owner& owner, const config::Limits& limits, http::Method method)
    : context_(context), owner_(owner), limits_(limits), method_(method) {}

Hedge::~Hedge() {
  if (state_.server != nullptr) end(metrics::Code::other);
}

bool Hedge::start(upstream::ServerConnections& target, ring::ServerIndex index) {
  state_.server = target.lease(*this, false);
  if (state_.server == nullptr) return false;
  state_.target = &target;
  state_.index = index;
  state_.dispatched_ns = context_.loop.now_ns();
  target.cells().in_flight.add();
  if (state_.server->connected()) send();
  return true;
}

Hedge::State Hedge::take_over(upstream::ServerConnection::User& by) {
  state_.server->hand_over(by);
  State state = std::move(state_);
  state_.server = nullptr;
  return state;
}

void Hedge::refuse(unsigned status) { end(metrics::code_of(status)); }

void Hedge::on_server_connected(const io::error_code& error) {
  context_.loop.refresh();
  if (error) return fail(connect_failure(error));
  send();
}

void Hedge::send() {
  owner_.write_hedge(*state_.target);
  written(state_.to_server.send(state_.server->stream(), context_.pieces));
}

// An end of the connection shows when it is read, which may find an answer first.
void Hedge::written(Outbox::Result result) {
  const std::size_t octets = state_.to_server.take_octets();
  state_.target->cells().sent_bytes.add(octets);
  state_.written |= octets > 0;
  if (result == Outbox::Result::blocked) state_.server->stream().wait_writable();
  state_.server->stream().read_soon();
}

void Hedge::on_server_writable(const io::error_code& error) {
  context_.loop.refresh();
  written(error ? Outbox::Result::failed : state_.to_server.flush(state_.server->stream()));
}

void Hedge::on_server_read(const io::error_code& error, std::size_t n) {
  context_.loop.refresh();
  if (error) return fail(Failure::reset);
  state_.target->cells().received_bytes.add(n);
  read_head();
}

void Hedge::read_head() {
  io::Buffer& in = state_.server->stream().in();
  http::ResponseHead& head = context_.response;
  while (!in.empty()) {
    switch (scan_answer(in, limits_, method_, head, scanned_)) {
      case http::Progress::refused:
        return fail(Failure::protocol);
      case http::Progress::incomplete:
        return state_.server->stream().read_soon();
      case http::Progress::complete:
        break;
    }
    scanned_ = 0;
    if (head.status >= 200) return owner_.on_hedge_answered(head.status);
    if (!may_be_interim(head.status, ++interims_)) return fail(Failure::protocol);
    in.consume(head.size);
  }
  state_.server->stream().read_soon();
}

void Hedge::fail(Failure failure) {
  if (const auto counted = blame(failure).counted) {
    metrics::at(state_.target->cells().errors, *counted).add();
  }
  const bool reused = state_.server->reused();
  end(metrics::Code::other);
  owner_.on_hedge_failed(*state_.target, failure, reused);
}

void Hedge::end(metrics::Code code) {
  state_.target->cells().attempt_ended(code, context_.loop.now_ns() - state_.dispatched_ns);
  upstream::ServerConnection& server = *std::exchange(state_.server, nullptr);
  state_.target->give_back(server, false, false);
}

}  // namespace clockwise::proxy
