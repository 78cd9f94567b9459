#include "upstream/memcached_pipe.h"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <charconv>
#include <random>
#include <utility>

namespace clockwise::upstream {

namespace {

// Answered requests in front of the others are let go of when they are so many octets.
constexpr std::size_t kSlack = 64 * 1024;
// So many octets of answers are kept until it is certain whose they are.
constexpr std::size_t kMostDoubted = 1024 * 1024;
// Memory for requests beyond this goes back as soon as it is not needed.
constexpr std::size_t kKept = 256 * 1024;

bool takes_values(AnswerShape shape) noexcept {
  return shape == AnswerShape::values || shape == AnswerShape::meta;
}

// The server refuses what nobody should have sent it, so that the two may be out of step; not the
// one refusal that is about an item.
bool is_doubtful(const memcached::Reply& reply) noexcept {
  using memcached::ReplyKind;
  if (reply.kind == ReplyKind::error) return true;
  return reply.kind == ReplyKind::client_error && !reply.rest.starts_with("cannot increment");
}

}  // namespace

void MemcachedCall::forget() noexcept {
  if (pipe_ == nullptr) return;
  MemcachedPipe& pipe = *std::exchange(pipe_, nullptr);
  pipe.calls_.at(number_ - pipe.first_).call = nullptr;
}

void MemcachedCall::hand_over(MemcachedCall& next) noexcept {
  next.pipe_ = std::exchange(pipe_, nullptr);
  next.number_ = number_;
  next.pipe_->calls_.at(number_ - next.pipe_->first_).call = &next;
}

void MemcachedPipe::Queue::push(const Owed& owed) {
  if (size_ == ring_.size()) {
    std::vector<Owed> larger(std::max<std::size_t>(16, ring_.size() * 2));
    for (std::size_t i = 0; i < size_; ++i) larger[i] = at(i);
    ring_.swap(larger);
    head_ = 0;
  }
  ring_[(head_ + size_) & (ring_.size() - 1)] = owed;
  ++size_;
}

MemcachedPipe::MemcachedPipe(io::Loop& loop, MemcachedServer& home, std::uint32_t first_endpoint)
    : loop_(loop),
      home_(home),
      stream_(io::make_stream(loop, *this)),
      first_endpoint_(first_endpoint) {}

// --- connecting ---------------------------------------------------------------------------------

void MemcachedPipe::connect() {
  connect_next(boost::asio::error::host_unreachable);
  set_deadline();
}

void MemcachedPipe::connect_next(const io::error_code&) {
  const auto& endpoints = home_.endpoints_;
  if (next_endpoint_ >= endpoints.size()) return end(CallFailure::refused, true);
  const std::size_t turn = std::size_t{first_endpoint_} + next_endpoint_++;
  stream_->connect(endpoints[turn % endpoints.size()]);
}

void MemcachedPipe::on_connected(const io::error_code& error) {
  if (ended_) return;
  if (error) {
    stream_->close();
    return connect_next(error);
  }
  connected_ = true;
  home_.cells_.connections_opened.add();
  home_.cells_.connections_active.add();
  stream_->no_delay();
  flush();
  if (!ended_) set_deadline();
}

// --- asking -------------------------------------------------------------------------------------

void MemcachedPipe::ask(MemcachedCall& call, const MemcachedRequest& request) {
  push({.call = &call,
        .size = 0,
        .shape = request.shape,
        .repeatable = request.repeatable,
        .has_data = !request.data.empty(),
        .repeated = false,
        .begun = false,
        .asked_ns = loop_.now_ns(),
        .due = loop_.now() + static_cast<io::Milliseconds>(request.patience.count())},
       request.line, request.data, request.more);
}

void MemcachedPipe::push(Owed owed, std::string_view line, std::string_view data,
                         std::span<const std::string_view> more) {
  const std::size_t begun = out_.size();
  out_.append(line).append(data);
  for (const std::string_view piece : more) out_.append(piece);
  owed.size = static_cast<std::uint32_t>(out_.size() - begun);
  if (owed.call != nullptr) {
    owed.call->pipe_ = this;
    owed.call->number_ = first_ + calls_.size();
  }
  home_.cells_.in_flight.add();
  calls_.push(owed);
  if (calls_.size() == 1) set_deadline();
  flush_soon();
}

// Many requests of one turn are one write.
void MemcachedPipe::flush_soon() {
  if (!connected_ || blocked_ || flush_wanted_) return;
  flush_wanted_ = true;
  stream_->readable_soon();
}

void MemcachedPipe::on_readable(const io::error_code&) {
  flush_wanted_ = false;
  if (!ended_ && !blocked_) flush();
}

void MemcachedPipe::flush() {
  if (sent_ < out_.size()) {
    const iovec piece{out_.data() + sent_, out_.size() - sent_};
    const auto written = stream_->write({&piece, 1});
    home_.cells_.sent_bytes.add(written.size);
    sent_ += written.size;
    // What it has answered before it closed may still be read.
    if (!written.error && sent_ < out_.size()) {
      blocked_ = true;
      stream_->wait_writable();
    }
  }
  await_answers();
}

void MemcachedPipe::on_writable(const io::error_code& error) {
  blocked_ = false;
  if (!ended_ && !error) flush();
}

// --- answers ------------------------------------------------------------------------------------

void MemcachedPipe::await_answers() {
  if (!stream_->read_begun()) stream_->release_empty_block();
  if (calls_.empty())
    stream_->watch_idle();
  else
    stream_->read_soon();
}

void MemcachedPipe::on_read(const io::error_code& error, std::size_t n) {
  if (ended_) return;
  if (error) return end(CallFailure::closed, !calls_.empty());
  loop_.refresh();
  last_read_ = loop_.now();
  home_.cells_.received_bytes.add(n);
  read_answers();
  if (ended_) return;
  if (leaving_ && calls_.empty()) return home_.remove(*this);
  await_answers();
}

void MemcachedPipe::read_answers() {
  io::Buffer& in = stream_->in();
  while (!ended_ && !in.empty() && (!doubted_ || in_step()))
    if (!(in_value_ ? read_value() : read_line())) break;
  if (ended_) return;
  if (in.full()) in.reserve(doubted_ ? 2 * in.size() : in.size() + 1);
  set_deadline();
}

// False: more has to come first, or the connection has ended.
bool MemcachedPipe::read_line() {
  io::Buffer& in = stream_->in();
  if (calls_.empty()) {  // nobody asked for it
    end(CallFailure::garbled, true);
    return false;
  }
  memcached::Reply reply;
  switch (memcached::scan_reply(in.view(), UINT32_MAX, scanned_, reply)) {
    case memcached::ReplyScan::more:
      return false;
    case memcached::ReplyScan::bad:
      end(CallFailure::garbled, true);
      return false;
    case memcached::ReplyScan::complete:
      break;
  }
  scanned_ = 0;
  Owed& owed = calls_.front();
  const bool first = !std::exchange(owed.begun, true);
  const AnswerShape shape = owed.shape;
  const bool value = reply.kind == memcached::ReplyKind::value;
  const bool last = ends(shape, reply, first);
  // The fence is ours alone.
  const bool told = owed.call != nullptr && (shape != AnswerShape::fenced || !last);
  const bool fits = shape == AnswerShape::fenced ? first || last : !value || takes_values(shape);
  if (!fits || (told && !owed.call->on_reply(reply))) {
    end(CallFailure::garbled, true);
    return false;
  }
  if (ended_) return false;
  in.consume(reply.size);
  if (value) {
    in_value_ = true;
    value_left_ = reply.length;
    return true;
  }
  if (!last) return true;
  const bool doubtful = !leaving_ && shape != AnswerShape::stats && is_doubtful(reply);
  const bool had_data = calls_.front().has_data;
  answered(reply.kind != memcached::ReplyKind::server_error);
  if (ended_ || !doubtful) return !ended_;
  return doubt(had_data);
}

// Whether a line that no value follows is the last of an answer; `first`: none came before it. A
// server from before the meta commands says ERROR to a fence as well.
bool MemcachedPipe::ends(AnswerShape shape, const memcached::Reply& reply, bool first) {
  using memcached::ReplyKind;
  if (shape == AnswerShape::stats) return reply.kind != ReplyKind::stat;
  if (shape != AnswerShape::fenced) return true;
  return reply.kind == ReplyKind::meta_noop || (!first && reply.kind == ReplyKind::error);
}

// The server refuses what it should have taken. A line more may follow, and what was sent as a
// value may be read as commands: nothing that comes now is known to be for whom it seems to be.
// False: the connection has ended.
bool MemcachedPipe::doubt(bool had_data) {
  home_.distrust(*this);
  leaving_ = true;
  if (!ask_elsewhere()) {
    end(CallFailure::closed, false);
    return false;
  }
  push_fence(had_data);
  return true;
}

// What does no harm when it is asked once more is. False: nobody waits for the rest.
bool MemcachedPipe::ask_elsewhere() {
  bool any_left = false;
  std::size_t at = out_begin_;
  std::size_t unsent = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    Owed& owed = calls_.at(i);
    const std::string_view request = std::string_view(out_).substr(at, owed.size);
    if (at >= sent_) ++unsent;
    const bool may = at >= sent_ || owed.repeatable;
    at += owed.size;
    if (owed.call == nullptr) continue;
    if (!may || owed.due <= loop_.now() || home_.away()) {
      any_left = true;
      continue;
    }
    Owed again = owed;
    again.repeated = true;
    owed.call = nullptr;
    home_.pipe().push(again, request, {});
  }
  for (; unsent > 0 && any_left; --unsent) {
    out_.resize(out_.size() - calls_.at(calls_.size() - 1).size);
    calls_.drop_last();
    home_.cells_.in_flight.sub();
  }
  return any_left;
}

// Behind a value that may be read as commands nothing that such commands could say is a sign.
void MemcachedPipe::push_fence(bool had_data) {
  std::string line = "mn\r\n";
  fence_ = "MN";
  if (had_data) {
    std::random_device device;
    std::array<char, 20> number;
    char* const end = std::to_chars(number.data(), number.data() + number.size(),
                                    (std::uint64_t{device()} << 32) | device(), 16)
                          .ptr;
    const std::string mark(number.data(), end);
    line = "md clockwise-fence-" + mark + " O" + mark + "\r\n";
    fence_ = "NF O" + mark;
  }
  doubted_ = true;
  ahead_ = ahead_at_ = 0;
  push({.call = nullptr,
        .size = 0,
        .shape = AnswerShape::line,
        .repeatable = false,
        .has_data = false,
        .repeated = false,
        .begun = false,
        .asked_ns = loop_.now_ns(),
        .due = loop_.now() + static_cast<io::Milliseconds>(home_.response_timeout_.count())},
       line, {});
}

// False: more has to come first, or the connection has ended, since it is out of step.
bool MemcachedPipe::in_step() {
  std::string_view line;
  while (ahead_ < calls_.size()) {
    switch (look_ahead(calls_.at(ahead_).shape, ahead_at_, line)) {
      case Ahead::answer:
        ++ahead_;
        continue;
      case Ahead::more:
        if (stream_->in().size() <= kMostDoubted) return false;
        [[fallthrough]];
      case Ahead::bad:
        end(CallFailure::closed, false);
        return false;
    }
  }
  doubted_ = false;
  if (line == fence_) return true;
  end(CallFailure::closed, false);
  return false;
}

// The answer that begins at `at`, which is then where the next one does; `line` is its last.
MemcachedPipe::Ahead MemcachedPipe::look_ahead(AnswerShape shape, std::size_t& at,
                                               std::string_view& line) const {
  const std::string_view in = stream_->in().view();
  memcached::Reply reply;
  bool first = true;
  for (std::size_t next = at;; first = false) {
    std::size_t scanned = 0;
    if (next >= in.size()) return Ahead::more;
    switch (memcached::scan_reply(in.substr(next), UINT32_MAX, scanned, reply)) {
      case memcached::ReplyScan::more:
        return Ahead::more;
      case memcached::ReplyScan::bad:
        return Ahead::bad;
      case memcached::ReplyScan::complete:
        break;
    }
    line = reply.line;
    next += reply.size;
    const bool value = reply.kind == memcached::ReplyKind::value;
    if (value && shape == AnswerShape::line) return Ahead::bad;
    if (value) next += std::size_t{reply.length} + 2;
    if (next > in.size()) return Ahead::more;
    const bool last = value ? shape == AnswerShape::meta : ends(shape, reply, first);
    if (!last) continue;
    at = next;
    return Ahead::answer;
  }
}

bool MemcachedPipe::read_value() {
  io::Buffer& in = stream_->in();
  const std::string_view octets = in.view();
  const std::size_t there = std::min<std::size_t>(octets.size(), value_left_);
  // The last piece waits for the CRLF behind it: without one nothing of the answer can be believed.
  const bool last = there == value_left_;
  if (last && octets.size() < there + 2) {
    const std::string_view begun = octets.substr(there);
    if (!begun.empty() && begun != "\r") {
      end(CallFailure::garbled, true);
      return false;
    }
    if (there <= 1) return false;
  }
  const bool ends = last && octets.size() >= there + 2;
  if (ends && octets.substr(there, 2) != "\r\n") {
    end(CallFailure::garbled, true);
    return false;
  }
  // So that there is always a piece that says it is the last.
  const std::size_t n = ends || !last ? there : there - 1;
  value_left_ -= static_cast<std::uint32_t>(n);
  MemcachedCall* const call = calls_.front().call;
  if (call != nullptr) call->on_value(octets.substr(0, n), value_left_);
  if (ended_) return false;
  in.consume(ends ? n + 2 : n);
  if (!ends) return true;
  in_value_ = false;
  if (calls_.front().shape == AnswerShape::meta) answered(true);
  return true;
}

void MemcachedPipe::answered(bool good) {
  const Owed owed = calls_.front();
  calls_.pop();
  ++first_;
  answered_any_ = true;
  drop_request(owed.size);
  home_.health_->succeeded();
  home_.cells_.attempt_ended(good ? metrics::Code::c2xx : metrics::Code::c5xx,
                             loop_.now_ns() - owed.asked_ns);
  if (owed.call == nullptr) return;
  owed.call->pipe_ = nullptr;
  owed.call->on_answered();
}

// The first request is answered: its octets are not needed any more.
void MemcachedPipe::drop_request(std::size_t size) noexcept {
  out_begin_ += size;
  if (out_begin_ == out_.size()) {
    if (out_.capacity() > kKept)
      std::string().swap(out_);
    else
      out_.clear();
    out_begin_ = sent_ = 0;
  } else if (out_begin_ >= kSlack && out_begin_ >= out_.size() / 2) {
    out_.erase(0, out_begin_);
    sent_ -= out_begin_;
    out_begin_ = 0;
  }
}

// --- ending -------------------------------------------------------------------------------------

// Many large values take their time on one connection: while octets come, nobody is late, up to a
// bound for a server that only drips.
io::Milliseconds MemcachedPipe::due_of(const Owed& owed) const noexcept {
  constexpr io::Milliseconds kMost = 10;
  const io::Milliseconds asked = owed.asked_ns / 1'000'000;
  const io::Milliseconds patience = owed.due > asked ? owed.due - asked : 0;
  return std::max(owed.due, std::min(last_read_ + patience, asked + kMost * patience));
}

void MemcachedPipe::set_deadline() noexcept {
  io::Milliseconds due = loop_.now() + home_.idle_timeout_;
  if (!connected_)
    due = loop_.now() + home_.connect_timeout_;
  else if (!calls_.empty())
    due = due_of(calls_.front());
  loop_.deadlines.set(*this, due);
}

void MemcachedPipe::on_deadline() {
  if (ended_) return;
  if (connected_ && calls_.empty()) return home_.remove(*this);
  if (connected_ && due_of(calls_.front()) > loop_.now()) return set_deadline();
  end(CallFailure::timed_out, true);
}

void MemcachedPipe::close() {
  ended_ = true;
  if (connected_) home_.cells_.connections_active.sub();
  stream_->close();
  loop_.deadlines.clear(*this);
}

void MemcachedPipe::fail(CallFailure failure) { end(failure, false); }

// `blame`: it tells something about the server. What it owes is asked once more on another
// connection where that is sure to do no harm: whatever was not sent, and what may be repeated. The
// server that was too late for the first may be too late for the others, but each has its time.
void MemcachedPipe::end(CallFailure failure, bool blame) {
  const bool stale = answered_any_ && failure == CallFailure::closed;
  Queue calls = std::exchange(calls_, {});
  const std::string out = std::exchange(out_, {});
  std::size_t at = std::exchange(out_begin_, 0);
  const std::size_t sent = std::exchange(sent_, 0);
  const bool was_connected = connected_;
  const bool in_answer = !calls.empty() && (calls.front().begun || scanned_ > 0);
  home_.remove(*this);
  // A connection that was kept and has died says nothing about its server.
  if (blame && !(stale && !in_answer)) home_.failed(failure);

  for (bool first = true; !calls.empty(); calls.pop(), first = false) {
    Owed owed = calls.front();
    const std::string_view request = std::string_view(out).substr(at, owed.size);
    const bool unsent = at >= sent;
    at += owed.size;
    home_.cells_.in_flight.sub();
    if (owed.call == nullptr) continue;
    owed.call->pipe_ = nullptr;
    const bool begun = first && in_answer;
    const bool late = first && failure == CallFailure::timed_out;
    const bool again = was_connected && !owed.repeated && !begun && !late &&
                       (unsent || owed.repeatable) && owed.due > loop_.now() && !home_.away() &&
                       failure != CallFailure::away;
    if (!again) {
      end_call(owed, failure);
      continue;
    }
    owed.repeated = true;
    home_.pipe().push(owed, request, {});
  }
}

void MemcachedPipe::end_call(const Owed& owed, CallFailure failure) {
  at(home_.cells_.requests, metrics::Code::other).add();
  owed.call->on_failed(failure);
}

}  // namespace clockwise::upstream
