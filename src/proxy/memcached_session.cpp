#include "proxy/memcached_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "proxy/memcached_stats.h"

namespace clockwise::proxy {

using memcached::Command;
using memcached::Refusal;
using memcached::Scanned;
using memcached::Verb;
using metrics::at;
using metrics::RequestError;

namespace {

constexpr std::string_view kBadChunk = "CLIENT_ERROR bad data chunk\r\n";
// Memory for answers beyond this goes back as soon as it is not needed.
constexpr std::size_t kKept = 64 * 1024;
// So many commands of one client are begun in a turn; then others get theirs.
constexpr int kMostInTurn = 4096;

io::Milliseconds ms(std::chrono::milliseconds duration) noexcept {
  return static_cast<io::Milliseconds>(duration.count());
}

}  // namespace

MemcachedSession::MemcachedSession(Listener& listener, int family, int descriptor,
                                   std::string_view client_ip, bool counted)
    : Client(client_ip, counted),
      listener_(listener),
      client_(io::make_stream(listener.context().loop, *this, family, descriptor)) {}

MemcachedSession::~MemcachedSession() = default;

void MemcachedSession::start() {
  client_->no_delay();
  listener_.cells().connections_active.add();
  go_on();
}

// --- reading ------------------------------------------------------------------------------------

void MemcachedSession::on_read(const io::error_code& error, std::size_t n) {
  if (gone_) return;
  listener_.context().loop.refresh();
  if (error) {
    // What was asked is answered before; a command cut short never was one.
    ending_ = true;
    client_->in().release();
    return go_on();
  }
  IdleLink::unlink();
  listener_.cells().received_bytes.add(n);
  read_commands();
}

void MemcachedSession::read_commands() {
  reading_ = true;
  for (int i = 0; i < kMostInTurn && !gone_ && !ending_ && has_room(); ++i)
    if (client_->in().empty() || !read_command()) break;
  reading_ = false;
  if (gone_) return;
  take_answers();
  go_on();
}

// False: more has to come first.
bool MemcachedSession::read_command() {
  io::Buffer& in = client_->in();
  if (skip_ > 0) return skip_data();
  Command command;
  Refusal refusal;
  const std::uint32_t largest = listener_.default_pool().largest_item;
  switch (memcached::scan_command(in.view(), largest, scanned_, command, refusal)) {
    case Scanned::more:
      if (in.full()) make_room(in.size() * 2);
      return false;
    case Scanned::command:
      return begin(command);
    case Scanned::hopeless:
      ending_ = true;
      [[fallthrough]];
    case Scanned::refused:
      refuse(command, refusal);
      return true;
  }
  return false;
}

// A read under way must find its place where it was; with what it brings this is asked again.
void MemcachedSession::make_room(std::size_t size) {
  if (!client_->read_begun()) client_->in().reserve(size);
}

bool MemcachedSession::begin(const Command& command) {
  io::Buffer& in = client_->in();
  std::string_view data;
  if (memcached::is_storage(command.verb)) {
    const std::size_t whole = std::size_t{command.line_size} + command.length + 2;
    if (in.size() < whole) {
      make_room(whole);
      scanned_ = 0;
      return false;
    }
    data = in.view().substr(command.line_size, std::size_t{command.length} + 2);
    if (!data.ends_with("\r\n")) {
      at(listener_.cells().request_errors, RequestError::framing).add();
      append().refuse(*this, command.noreply ? std::string_view() : kBadChunk, {},
                      static_cast<std::uint32_t>(whole));
      in.consume(whole);
      scanned_ = 0;
      return true;
    }
  }
  if (command.verb == Verb::quit) ending_ = true;
  const std::size_t whole = command.line_size + data.size();
  append().start(*this, command, data);
  in.consume(whole);
  scanned_ = 0;
  return true;
}

void MemcachedSession::refuse(const Command& command, const Refusal& refusal) {
  at(listener_.cells().request_errors, RequestError::malformed).add();
  io::Buffer& in = client_->in();
  const std::string_view key = refusal.deletes_key ? command.key : std::string_view();
  append().refuse(*this, refusal.silent ? std::string_view() : refusal.answer, key,
                  command.line_size);
  if (ending_)
    in.clear();
  else
    in.consume(command.line_size);
  scanned_ = 0;
  skip_ = refusal.skip;
}

bool MemcachedSession::skip_data() {
  io::Buffer& in = client_->in();
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, in.size()));
  in.consume(n);
  skip_ -= n;
  return skip_ == 0;
}

MemcachedCommand& MemcachedSession::append() {
  MemcachedCommand& command = listener_.context().take_command();
  commands_.push_back(command);
  return command;
}

bool MemcachedSession::has_room() const noexcept {
  const config::Limits& limits = listener_.config().limits;
  return unanswered_ < limits.unanswered && out_.size() - sent_ < limits.unsent &&
         listener_.context().memcached_held < limits.buffered;
}

// --- answering ----------------------------------------------------------------------------------

void MemcachedSession::command_done() {
  if (!reading_) take_answers();
}

void MemcachedSession::take_answers() {
  bool any = false;
  while (!commands_.empty() && commands_.front().done()) {
    MemcachedCommand& command = commands_.front();
    commands_.pop_front();
    if (std::string& answer = command.answer(); !answer.empty()) {
      if (out_.empty())
        out_.swap(answer);
      else
        out_.append(answer);
    }
    listener_.context().give_back(command);
    any = true;
  }
  if (any) flush_soon();
}

// All that is answered in a turn is one write.
void MemcachedSession::flush_soon() {
  if (blocked_ || flush_wanted_ || gone_) return;
  flush_wanted_ = true;
  client_->readable_soon();
}

void MemcachedSession::on_readable(const io::error_code&) {
  flush_wanted_ = false;
  if (gone_) return;
  if (!blocked_) flush();
  if (!gone_) go_on();
}

void MemcachedSession::flush() {
  if (sent_ == out_.size()) return;
  const iovec piece{out_.data() + sent_, out_.size() - sent_};
  const auto written = client_->write({&piece, 1});
  if (written.error) return leave();
  listener_.cells().sent_bytes.add(written.size);
  sent_ += written.size;
  if (sent_ < out_.size()) {
    blocked_ = true;
    client_->wait_writable();
    return;
  }
  sent_ = 0;
  if (out_.capacity() > kKept)
    std::string().swap(out_);
  else
    out_.clear();
}

void MemcachedSession::on_writable(const io::error_code& error) {
  if (gone_) return;
  blocked_ = false;
  if (error) return leave();
  flush();
  if (!gone_) go_on();
}

// --- what comes next ----------------------------------------------------------------------------

void MemcachedSession::go_on() {
  if (ending_ && commands_.empty() && out_.empty()) return leave();
  // What was left when there was no room, or after a turn's share.
  if (!ending_ && !client_->in().empty() && has_room() && scanned_ == 0 && !reading_) {
    const std::size_t before = client_->in().size();
    reading_ = true;
    for (int i = 0; i < kMostInTurn && !gone_ && !ending_ && has_room(); ++i)
      if (client_->in().empty() || !read_command()) break;
    reading_ = false;
    if (gone_) return;
    if (client_->in().size() != before) take_answers();
    if (ending_ && commands_.empty() && out_.empty()) return leave();
  }
  set_deadline();
  if (ending_ || !has_room()) return;
  if (!client_->read_begun()) client_->release_empty_block();
  // Whoever waits for answers hardly sends anything before it has them.
  if (commands_.empty() && out_.empty())
    client_->read_soon();
  else
    client_->watch_idle();
  if (unused() && !is_linked()) {
    waits_since_ns_ = listener_.context().loop.now_ns();
    listener_.now_idle(*this, false);
  }
}

bool MemcachedSession::unused() const noexcept {
  return commands_.empty() && out_.empty() && client_->in().empty() && skip_ == 0;
}

void MemcachedSession::set_deadline() {
  const config::ListenerTimeouts& timeouts = listener_.config().timeouts;
  io::Milliseconds due = io::Deadlines::kNever;
  const io::Milliseconds now = listener_.context().loop.now();
  if (blocked_)
    due = now + ms(timeouts.write);
  else if (commands_.empty() && (!client_->in().empty() || skip_ > 0))
    due = now + ms(timeouts.body);
  else if (unused() && timeouts.idle.count() > 0)
    due = now + ms(timeouts.idle);
  if (due == io::Deadlines::kNever)
    listener_.context().loop.deadlines.clear(*this);
  else
    listener_.context().loop.deadlines.set(*this, due);
}

void MemcachedSession::on_deadline() { leave(); }

void MemcachedSession::drain() {
  ending_ = true;
  go_on();
}

void MemcachedSession::drop() { leave(); }

bool MemcachedSession::close_if_unused() {
  if (!unused() || client_->has_news()) return false;
  leave();
  return true;
}

void MemcachedSession::leave() {
  if (gone_) return;
  gone_ = true;
  IdleLink::unlink();
  commands_.clear_and_dispose([this](MemcachedCommand* command) {
    if (command->done())
      listener_.context().give_back(*command);
    else
      command->abandon();
  });
  listener_.context().loop.deadlines.clear(*this);
  listener_.cells().connections_active.sub();
  client_->close();
  listener_.leave(*this);
}

// --- what it says of itself ---------------------------------------------------------------------

std::string_view MemcachedSession::version() {
  text_ = fmt::format("VERSION {}\r\n", memcached_version(listener_.default_pool()));
  return text_;
}

std::string_view MemcachedSession::stats(std::string_view arguments) {
  if (!arguments.empty()) return "ERROR\r\n";
  text_ = memcached_stats(listener_.spec(), listener_.default_pool(), listener_.context());
  return text_;
}

}  // namespace clockwise::proxy
