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
// What a command takes beside its octets, about, here and in the queue of its server.
constexpr std::size_t kCommandCost = 64;
// So many keys of one client may be under way however small the values are: the others' commands
// stand behind them.
constexpr std::size_t kMostAsked = 2048;
// What the answer for a key is taken to be as long as nothing is known.
constexpr std::size_t kUnknownAnswer = 16 * 1024;

io::Milliseconds ms(std::chrono::milliseconds duration) noexcept {
  return static_cast<io::Milliseconds>(duration.count());
}

// As many answers are waited for.
std::size_t waits_of(const MemcachedCommand& command) noexcept {
  return std::max<std::size_t>(1, command.keys());
}

}  // namespace

MemcachedSession::MemcachedSession(Listener& listener, int family, int descriptor,
                                   std::string_view client_ip, bool counted)
    : Client(client_ip, counted),
      listener_(listener),
      client_(io::make_stream(listener.context().loop, *this, family, descriptor)),
      per_key_(kUnknownAnswer) {}

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
  // What was asked is answered before; a command cut short never was one.
  if (error) eof_ = true;
  IdleLink::unlink();
  listener_.cells().received_bytes.add(n);
  wants_more_ = false;
  go_on();
}

// As many as there is room for, and no more than a turn's share.
void MemcachedSession::begin_commands() {
  reading_ = true;
  held_back_ = false;
  for (int i = 0; i < kMostInTurn && !gone_ && !ending_ && !wants_more_ && has_room(); ++i)
    wants_more_ = client_->in().empty() || (!read_command() && !held_back_);
  reading_ = false;
  if (!gone_) take_answers();
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
      if (refusal.answer.empty()) warn_of_binary();
      [[fallthrough]];
    case Scanned::refused:
      if (refusal.deletes_key && hold_back(command)) return false;
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
      MemcachedCommand& refused = append();
      refused.refuse(*this, command.noreply ? std::string_view() : kBadChunk, {},
                     static_cast<std::uint32_t>(whole));
      begun(refused);
      in.consume(whole);
      scanned_ = 0;
      return true;
    }
  }
  if (hold_back(command)) return false;
  if (command.verb == Verb::quit) ending_ = true;
  const std::size_t whole = command.line_size + data.size();
  MemcachedCommand& one = append();
  one.start(*this, command, data);
  begun(one);
  in.consume(whole);
  scanned_ = 0;
  return true;
}

// Where several servers hold an item, a command may reach some of them later than one that came
// after it. About one key that would make another order. True: it waits.
bool MemcachedSession::hold_back(const Command& command) {
  if (in_steps_ == 0 || !must_wait(command)) return false;
  held_back_ = true;
  scanned_ = 0;
  return true;
}

bool MemcachedSession::must_wait(const Command& command) {
  KeyMarks searched = 0, decided = 0;
  for (const MemcachedCommand& earlier : commands_) {
    if (earlier.done()) continue;
    searched |= earlier.searched();
    decided |= earlier.decided();
  }
  const KeyMarks others = memcached::is_read(command.verb) ? decided : searched | decided;
  if (command.verb == Verb::flush_all) return others != 0;
  if (others == 0 || command.key.empty()) return false;
  KeyMarks keys = mark_of(memcached::ring_key(command, listener_.context().key));
  std::string_view rest = memcached::is_retrieval(command.verb) ? command.rest : "";
  for (std::string_view key = memcached::next_word(rest); !key.empty();
       key = memcached::next_word(rest))
    keys |= mark_of(key);
  return (keys & others) != 0;
}

void MemcachedSession::refuse(const Command& command, const Refusal& refusal) {
  at(listener_.cells().request_errors, RequestError::malformed).add();
  io::Buffer& in = client_->in();
  std::string_view key;
  if (refusal.deletes_key) key = memcached::ring_key(command, listener_.context().key);
  MemcachedCommand& one = append();
  one.refuse(*this, refusal.silent ? std::string_view() : refusal.answer, key, command.line_size);
  begun(one);
  if (ending_)
    in.clear();
  else
    in.consume(command.line_size);
  scanned_ = 0;
  skip_ = refusal.skip;
}

// Once a minute: a client that is set up so tries again and again.
void MemcachedSession::warn_of_binary() {
  constexpr io::Milliseconds kPause = 60'000;
  Context& context = listener_.context();
  const io::Milliseconds now = context.loop.now();
  if (!context.admission->warn || now < context.binary_told_again_at) return;
  context.binary_told_again_at = now + kPause;
  context.admission->warn(
      fmt::format("listener {}: a client speaks memcached's binary protocol; only the text "
                  "protocol and its meta commands are known here",
                  listener_.config().name));
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

void MemcachedSession::begun(const MemcachedCommand& command) noexcept {
  unanswered_ += command.size() + kCommandCost;
  asked_ += command.keys();
  if (command.has_steps()) ++in_steps_;
  listener_.context().loop.gather.begun(waits_of(command), listener_.config().limits.gather);
  listener_.cells().in_flight.add();
}

// A command that is alone always has room, unless the client does not take its answers.
bool MemcachedSession::has_room() const noexcept {
  const config::Limits& limits = listener_.config().limits;
  const std::size_t waiting = out_.size() - sent_;
  if (held_back_) return false;
  if (waiting >= limits.unsent || listener_.context().memcached_held >= limits.buffered)
    return false;
  return commands_.empty() || (unanswered_ < limits.unanswered && asked_ < kMostAsked &&
                               waiting + held_ + asked_ * per_key_ < limits.unsent);
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
    unanswered_ -= command.size() + kCommandCost;
    asked_ -= command.keys();
    if (command.has_steps()) --in_steps_;
    held_ -= command.held();
    learn(command);
    count(command);
    if (std::string& answer = command.answer(); !answer.empty()) {
      if (out_.empty())
        out_.swap(answer);
      else
        out_.append(answer);
    }
    listener_.context().give_back(command);
    any = true;
  }
  account();
  if (any) flush_soon();
}

void MemcachedSession::count(const MemcachedCommand& command) noexcept {
  metrics::ListenerCells& cells = listener_.cells();
  cells.in_flight.sub();
  at(cells.requests, command.code()).add();
  const std::uint64_t took = listener_.context().loop.now_ns() - command.begun_ns();
  cells.duration.observe(took);
  listener_.context().loop.gather.ended(waits_of(command), took);
}

// An eighth of the newest answer, seven of those before; a larger one counts at once.
void MemcachedSession::learn(MemcachedCommand& command) noexcept {
  if (command.keys() == 0) return;
  const std::size_t newest = command.answer().size() / command.keys();
  per_key_ = std::max(newest, (per_key_ * 7 + newest) / 8);
}

void MemcachedSession::account() noexcept {
  std::size_t& all = listener_.context().memcached_held;
  const std::size_t now = gone_ ? 0 : client_->in().size() + out_.size();
  all += now - accounted_;  // modulo 2^64
  accounted_ = now;
}

// All that is answered in a turn is one write.
void MemcachedSession::flush_soon() {
  if (!blocked_) go_on_soon();
}

// At the end of this turn.
void MemcachedSession::go_on_soon() {
  if (go_on_wanted_ || gone_) return;
  go_on_wanted_ = true;
  client_->readable_soon();
}

void MemcachedSession::on_readable(const io::error_code&) {
  go_on_wanted_ = false;
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
  account();
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
  if (!ending_ && !wants_more_) begin_commands();
  if (gone_) return;
  if (eof_ && wants_more_) ending_ = true;
  if (ending_ && !client_->read_begun()) client_->in().release();
  if (ending_ && commands_.empty() && out_.empty()) return leave();
  account();
  set_deadline();
  if (ending_) return;
  if (!wants_more_) return has_room() ? go_on_soon() : wait_for_room();
  if (!client_->read_begun()) client_->release_empty_block();
  // Whoever waits for answers hardly sends anything before it has them, nor at once when it has.
  client_->watch_idle();
  if (unused() && !is_linked()) {
    waits_since_ns_ = listener_.context().loop.now_ns();
    listener_.now_idle(*this, false);
  }
}

// An answer of its own makes room; where it has none to come, it is the others that take it.
void MemcachedSession::wait_for_room() {
  if (commands_.empty() && out_.empty() && !is_linked())
    listener_.context().memcached_waiting.push_back(*this);
}

void MemcachedSession::resume() {
  IdleLink::unlink();
  if (!gone_) go_on();
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

// What has come is answered first.
void MemcachedSession::drain() {
  eof_ = true;
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
  account();
  IdleLink::unlink();
  commands_.clear_and_dispose([this](MemcachedCommand* command) {
    listener_.cells().in_flight.sub();
    listener_.context().loop.gather.dropped(waits_of(*command));
    at(listener_.cells().requests, metrics::Code::other).add();
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

std::string_view MemcachedSession::stats(std::string_view arguments) {
  if (!arguments.empty()) return "ERROR\r\n";
  text_ = memcached_stats(listener_.spec(), listener_.default_pool(), listener_.context());
  return text_;
}

}  // namespace clockwise::proxy
