#include "proxy/memcached_command.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "memcached/key.h"
#include "memcached/number.h"
#include "proxy/memcached_counts.h"
#include "proxy/memcached_session.h"
#include "proxy/memcached_stats.h"

namespace clockwise::proxy {

using memcached::Command;
using memcached::Reply;
using memcached::ReplyKind;
using memcached::Verb;
using metrics::at;
using metrics::MemcachedResult;
using upstream::AnswerShape;
using upstream::CallFailure;

namespace {

constexpr std::string_view kEnd = "END\r\n";
constexpr std::string_view kLineEnd = "\r\n";

// A quiet `ma` is silent where the item was there, and not where it has made one: only the server
// can tell these apart. A `mn` behind it shows when there is nothing to come.
constexpr std::string_view kQuietAndFence = " q\r\nmn\r\n";

bool says_what_it_makes(const Command& command) noexcept {
  return command.verb == Verb::meta_arithmetic && command.quiet && memcached::makes(command);
}

// The time of what is written to a stand-in, in the flags of a meta command, which are put together
// in `flags`: T, and N of what is made where nothing was.
void shorten_flags(Command& command, std::chrono::milliseconds life, std::string& flags) {
  using memcached::exptime_of_stand_in;
  bool has_time = false;
  std::string_view words = command.rest;
  for (std::string_view word = memcached::next_word(words); !word.empty();
       word = memcached::next_word(words)) {
    std::int32_t exptime = 0;
    const bool is_time = word.front() == 'T' || word.front() == 'N';
    has_time = has_time || word.front() == 'T';
    flags.append(" ");
    if (is_time && memcached::read_number(word.substr(1), exptime))
      flags.append(1, word.front()).append(std::to_string(exptime_of_stand_in(exptime, life)));
    else
      flags.append(word);
  }
  if (command.verb == Verb::meta_set && !has_time)
    flags.append(" T").append(std::to_string(exptime_of_stand_in(0, life)));
  command.rest = flags;
}

void shorten(Command& command, std::chrono::milliseconds life, std::string& flags) {
  if (memcached::is_meta(command.verb))
    shorten_flags(command, life, flags);
  else
    command.exptime = memcached::exptime_of_stand_in(command.exptime, life);
}

}  // namespace

// --- what a server says -------------------------------------------------------------------------

bool MemcachedCommand::Part::on_reply(const Reply& reply) {
  if (!memcached::answers(command_.verb_, reply)) return false;
  kind = reply.kind;
  if (memcached::is_retrieval(command_.verb_) && kind == ReplyKind::value) return on_item(reply);
  if (memcached::is_retrieval(command_.verb_) && kind == ReplyKind::end) return true;
  const std::uint32_t place = place_of(0);
  if (place > 0) [[unlikely]]
    memcached::append_answer(reply, place, text);
  else
    text.append(reply.line).append(kLineEnd);
  return true;
}

// Of who is asked for a key among its owners.
std::uint32_t MemcachedCommand::Part::place_of(std::uint32_t key) const noexcept {
  return command_.searches_.empty() ? 0 : command_.searches_[key].place;
}

// Exactly the keys that were asked for, in their order; some may be missing.
bool MemcachedCommand::Part::on_item(const Reply& reply) {
  while (next_key < keys.size() && command_.key_at(keys[next_key]) != reply.key) ++next_key;
  if (next_key == keys.size()) return false;
  const std::uint32_t place = place_of(keys[next_key]);
  items.push_back({static_cast<std::uint32_t>(next_key++), 0});
  if (place > 0 && reply.has_unique) [[unlikely]] {
    std::string marked;
    memcached::append_answer(reply, place, marked);
    keep(marked, {});
  } else {
    keep(reply.line, kLineEnd);
  }
  return true;
}

void MemcachedCommand::Part::on_value(std::string_view octets, std::uint32_t left) {
  if (octets.size() + left > 16384 && text.capacity() < text.size() + octets.size() + left + 2 &&
      !overflowed)
    text.reserve(text.size() + octets.size() + left + 2 + kEnd.size());
  keep(octets, left > 0 ? std::string_view() : kLineEnd);
  if (left == 0 && !items.empty() && !overflowed) items.back().end = text.size();
}

// What comes after there was no memory is read and forgotten.
void MemcachedCommand::Part::keep(std::string_view octets, std::string_view end) {
  if (command_.session_ == nullptr) return;
  overflowed = overflowed || !command_.hold(octets.size() + end.size());
  if (!overflowed) text.append(octets).append(end);
}

void MemcachedCommand::Part::on_answered() {
  if (overflowed) return command_.fail(*this, "out of memory");
  ok = true;
  command_.part_done();
}

void MemcachedCommand::Part::on_failed(CallFailure failure) {
  command_.fail(*this, upstream::describe(failure));
}

// --- what is asked ------------------------------------------------------------------------------

void MemcachedCommand::begin(MemcachedSession& session, Verb verb, std::uint32_t size) {
  session_ = &session;
  verb_ = verb;
  size_ = size;
  code_ = metrics::Code::c2xx;
  begun_ns_ = context_.loop.now_ns();
  held_ = size;
  context_.memcached_held += size;
  noreply_ = quiet_ = fenced_ = false;
  pending_ = 1;
  parts_used_ = 0;
  keys_.clear();
  key_ends_.clear();
  part_of_.clear();
  searches_.clear();
  sets_.reset();
  alone_ = false;
  round_ = 0;
  searched_ = decided_ = 0;
  error_.clear();
  answer_.clear();
}

// False: it would be more than all clients of the worker together may have.
bool MemcachedCommand::hold(std::size_t octets) noexcept {
  const std::uint64_t most = session_->listener().config().limits.buffered;
  if (context_.memcached_held + octets > most) return false;
  held_ += octets;
  context_.memcached_held += octets;
  session_->hold(octets);
  return true;
}

void MemcachedCommand::let_go() noexcept { context_.memcached_held -= std::exchange(held_, 0); }

PoolView& MemcachedCommand::view_of(std::string_view key) const {
  return *session_->listener().pool_for_key(key);
}

MemcachedCommand::Whom MemcachedCommand::whom(PoolView& view, std::string_view key) const {
  if (view.pool->ring->empty()) return {.view = &view};
  const ring::Position position = position_of(view, key);
  upstream::MemcachedServer& home = home_of(view, position);
  const auto target = target_of(view, key, position, context_);
  return {.view = &view,
          .server = target ? target->server : &home,
          .home = &home,
          .stands_in = target && target->stands_in(),
          .asked = target.has_value()};
}

// The view lives at least until the answer.
MemcachedCommand::Part& MemcachedCommand::add_part(const Whom& whom) {
  if (parts_used_ == parts_.size()) parts_.push_back(std::make_unique<Part>(*this));
  Part& part = *parts_[parts_used_++];
  ++whom.view->users;
  part.view = whom.view;
  part.server = whom.server;
  part.stands_in = whom.stands_in;
  part.asked = whom.asked;
  part.line.clear();
  part.text.clear();
  part.keys.clear();
  part.items.clear();
  part.next_key = part.next_item = part.taken = 0;
  part.kind = fenced_ ? ReplyKind::meta_done : ReplyKind::end;
  part.ok = part.aside = part.overflowed = part.failed = false;
  return part;
}

void MemcachedCommand::set_key(std::string_view key) {
  keys_ = key;
  key_ends_.push_back(static_cast<std::uint32_t>(key.size()));
}

void MemcachedCommand::start(MemcachedSession& session, const Command& command,
                             std::string_view data) {
  begin(session, command.verb, command.line_size + static_cast<std::uint32_t>(data.size()));
  noreply_ = command.noreply;
  quiet_ = command.quiet;
  switch (command.verb) {
    case Verb::meta_noop:
      return answer_here("MN\r\n");
    case Verb::version:
      return start_version();
    case Verb::stats:
      return answer_here(session.stats(command.rest));
    case Verb::verbosity:
      return answer_here(command.noreply ? "" : "OK\r\n");
    case Verb::flush_all:
      return start_flush(command);
    case Verb::quit:
      return answer_here({});
    default:
      break;
  }
  if (memcached::is_retrieval(command.verb)) return start_retrieval(command);
  start_single(command, data);
}

void MemcachedCommand::refuse(MemcachedSession& session, std::string_view text,
                              std::string_view key, std::uint32_t size) {
  begin(session, Verb::remove, size);
  answer_ = text;
  noreply_ = true;  // the answer is here already
  code_ = text.starts_with("SERVER_ERROR") ? metrics::Code::c5xx : metrics::Code::c4xx;
  if (key.empty()) return part_done();
  set_key(key);
  std::string& line = context_.text;
  line.clear();
  if (memcached::append_delete(key, line)) verb_ = Verb::meta_delete;
  PoolView& view = view_of(keys_);
  std::string scratch;
  if (has_replicas(view) && write(view, memcached::deletion_of(keys_, scratch), {}))
    return part_done();
  const Whom owner = whom(view, keys_);
  if (owner.server != nullptr)
    ask(add_part(owner),
        {.line = line, .data = {}, .shape = AnswerShape::meta, .repeatable = true});
  part_done();
}

void MemcachedCommand::answer_here(std::string_view text) {
  answer_ = text;
  part_done();
}

// One key, one server.
void MemcachedCommand::start_single(const Command& command, std::string_view data) {
  set_key(memcached::ring_key(command, context_.key));
  PoolView& view = view_of(keys_);
  const bool several = has_replicas(view);
  if (several && !memcached::is_read(verb_) && write(view, command, data)) return part_done();
  const Whom one =
      several && memcached::is_read(verb_) ? begin_search(view, 0, 1) : whom(view, keys_);
  Command sent = command;
  std::string flags;
  if (one.stands_in) shorten(sent, one.view->pool->config.memcached.failover_ttl, flags);
  std::string& line = context_.text;
  line.clear();
  memcached::append_line(sent, line);
  fenced_ = says_what_it_makes(command);
  if (fenced_) line.replace(line.size() - kLineEnd.size(), kLineEnd.size(), kQuietAndFence);
  const upstream::MemcachedRequest request{
      .line = line,
      .data = data,
      .shape = fenced_ ? AnswerShape::fenced : upstream::shape_of(verb_),
      .repeatable = memcached::is_repeatable(verb_)};
  Part& part = add_part(one);
  if (!searches_.empty()) search_with(part, line, command);
  ask(part, request);
  if (one.stands_in && !memcached::is_read(verb_)) tell_home(one, request);
  part_done();
}

// What a stand-in does is news for the owner, should it come back with what it held. What is
// deleted is deleted on both.
void MemcachedCommand::tell_home(const Whom& whom, const upstream::MemcachedRequest& request) {
  const bool deletes = verb_ == Verb::remove || verb_ == Verb::meta_delete;
  if (!deletes || whom.home->away()) return whom.home->missed_write(keys_);
  Part& part = add_part({.view = whom.view, .server = whom.home, .asked = true});
  part.aside = true;
  ask(part, request);
}

// Keys of one server are asked for together.
void MemcachedCommand::start_retrieval(const Command& command) {
  std::string_view rest = command.rest;
  for (std::string_view key = command.key; !key.empty(); key = memcached::next_word(rest)) {
    keys_.append(key);
    key_ends_.push_back(static_cast<std::uint32_t>(keys_.size()));
  }
  exptime_ = command.exptime;
  const auto keys = static_cast<std::uint32_t>(key_ends_.size());
  part_of_.resize(keys);
  for (std::uint32_t i = 0; i < keys; ++i) {
    PoolView& view = view_of(key_at(i));
    add_key(part_for(has_replicas(view) ? begin_search(view, i, keys) : whom(view, key_at(i))), i);
  }
  sets_ = memcached::touch_of(command);
  ask_parts(0);
  part_done();
}

// The number of the part that asks this server in this round.
std::uint32_t MemcachedCommand::part_for(const Whom& whom) {
  std::uint32_t at = round_;
  const auto is_it = [&](const Part& part) {
    return part.server == whom.server && part.view == whom.view &&
           part.stands_in == whom.stands_in && part.asked == whom.asked;
  };
  while (at < parts_used_ && !is_it(*parts_[at])) ++at;
  if (at < parts_used_) return at;
  Part& part = add_part(whom);
  part.line.append(memcached::name_of(verb_));
  if (verb_ != Verb::gat && verb_ != Verb::gats) return at;
  Command sent;
  sent.verb = verb_;
  sent.exptime = exptime_;
  std::string flags;
  if (whom.stands_in) shorten(sent, whom.view->pool->config.memcached.failover_ttl, flags);
  part.line.append(" ").append(std::to_string(sent.exptime));
  return at;
}

void MemcachedCommand::add_key(std::uint32_t part, std::uint32_t key) {
  parts_[part]->line.append(" ").append(key_at(key));
  parts_[part]->keys.push_back(key);
  part_of_[key] = part;
}

void MemcachedCommand::ask_parts(std::uint32_t from) {
  const std::uint32_t to = parts_used_;
  for (std::uint32_t i = from; i < to; ++i) {
    Part& part = *parts_[i];
    part.line.append(kLineEnd);
    ask(part, {.line = part.line, .data = {}, .shape = AnswerShape::values, .repeatable = true});
  }
}

void MemcachedCommand::start_flush(const Command& command) {
  PoolView& view = session_->listener().default_pool();
  if (!view.pool->config.memcached.allow_flush) {
    return answer_here(noreply_ ? ""
                                : "CLIENT_ERROR flush_all is not allowed here (memcached."
                                  "allow_flush)\r\n");
  }
  std::string& line = context_.text;
  line.clear();
  memcached::append_line(command, line);
  ask_all(view, line);
  part_done();
}

// Servers that were never asked anything have not said yet what they are: a connection does.
void MemcachedCommand::start_version() {
  PoolView& view = session_->listener().default_pool();
  if (memcached_version(view).empty()) ask_all(view, "version\r\n");
  part_done();
}

void MemcachedCommand::ask_all(PoolView& view, std::string_view line) {
  for (upstream::MemcachedServer* server : view.memcached)
    ask(add_part({.view = &view, .server = server, .asked = true}),
        {.line = line, .data = {}, .shape = AnswerShape::line, .repeatable = true});
}

void MemcachedCommand::ask(Part& part, upstream::MemcachedRequest request) {
  ++pending_;
  request.patience = part.view->pool->config.timeouts.response;
  if (!part.asked || !part.server->ask(part, request))
    fail(part, upstream::describe(CallFailure::away));
}

// --- what it comes to ---------------------------------------------------------------------------

std::string_view MemcachedCommand::key_at(std::size_t i) const noexcept {
  const std::size_t begin = i == 0 ? 0 : key_ends_[i - 1];
  return std::string_view(keys_).substr(begin, key_ends_[i] - begin);
}

void MemcachedCommand::fail(Part& part, std::string_view cause) {
  // Of an item that has not come whole nothing is given.
  if (!part.items.empty() && part.items.back().end == 0) part.items.pop_back();
  part.text.resize(part.items.empty() ? 0 : part.items.back().end);
  if (part.server != nullptr && verb_ == Verb::flush_all) part.server->missed_flush();
  if (part.server != nullptr && !memcached::is_read(verb_) && !keys_.empty())
    part.server->missed_write(keys_);
  const bool told = !memcached::is_read(verb_) || part.view->pool->config.memcached.error_on_read;
  if (error_.empty() && told && !part.aside) {
    error_.append("SERVER_ERROR ");
    if (part.server != nullptr)
      error_.append(part.server->name()).append(" ").append(cause);
    else
      error_.append("no server is on the ring");
    error_.append(kLineEnd);
  }
  part_done();
}

void MemcachedCommand::part_done() {
  if (--pending_ > 0) return;
  finish();
}

void MemcachedCommand::finish() {
  if (!searches_.empty()) {
    if (searches_on()) return;
    end_search();
  } else {
    for (std::uint32_t i = 0; i < parts_used_; ++i) {
      if (parts_[i]->aside) continue;
      judge(parts_[i]->ok, parts_[i]->kind);
      count(*parts_[i]);
    }
    if (memcached::is_retrieval(verb_))
      finish_retrieval();
    else if (verb_ == Verb::version)
      finish_version();
    else if (parts_used_ > 0)
      finish_single();
  }
  for (std::uint32_t i = 0; i < parts_used_; ++i) --parts_[i]->view->users;
  if (session_ != nullptr)
    session_->command_done();
  else
    context_.give_back(*this);
}

void MemcachedCommand::judge(bool answered, ReplyKind kind) noexcept {
  using metrics::Code;
  Code code = Code::c2xx;
  if (!answered)
    code = error_.empty() ? Code::c2xx : Code::c5xx;
  else if (memcached::is_error(kind))
    code = kind == ReplyKind::server_error ? Code::c5xx : Code::c4xx;
  code_ = std::max(code_, code);
}

void MemcachedCommand::finish_version() {
  if (session_ == nullptr) return;
  const std::string version = memcached_version(session_->listener().default_pool());
  if (version.empty())
    answer_ = "SERVER_ERROR no server has answered yet\r\n";
  else
    answer_.append("VERSION ").append(version).append(kLineEnd);
}

// The items in the order of the client's keys.
void MemcachedCommand::finish_retrieval() {
  const bool failed = !error_.empty();
  if (parts_used_ == 1) {
    Part& part = *parts_.front();
    answer_.swap(part.text);
    // What a server says instead of END it says for itself.
    if (part.ok && memcached::is_error(part.kind)) return;
    answer_.append(failed ? std::string_view(error_) : kEnd);
    return;
  }
  std::size_t size = 0;
  std::string_view told;
  for (std::uint32_t i = 0; i < parts_used_; ++i) {
    Part& part = *parts_[i];
    size += part.text.size();
    const bool told_error = part.ok && memcached::is_error(part.kind);
    if (told_error && part.view->pool->config.memcached.error_on_read) told = part.text;
  }
  answer_.reserve(size + kEnd.size());
  for (std::size_t i = 0; i < part_of_.size(); ++i) {
    Part& part = *parts_[part_of_[i]];
    if (part.next_item == part.items.size()) continue;
    const Part::Item& item = part.items[part.next_item];
    if (part.keys[item.key] != i) continue;
    answer_.append(part.text, part.taken, item.end - part.taken);
    part.taken = item.end;
    ++part.next_item;
  }
  if (!told.empty()) {
    const std::size_t line = told.rfind('\n', told.size() - 2);
    answer_.append(told.substr(line == std::string_view::npos ? 0 : line + 1));
  } else {
    answer_.append(failed ? std::string_view(error_) : kEnd);
  }
}

void MemcachedCommand::finish_single() {
  if (noreply_) return;
  for (std::uint32_t i = 0; i < parts_used_; ++i) {
    Part& part = *parts_[i];
    if (part.aside) {
      // Deleted on the owner, if not on who stands in for it.
      if (!is_done(part) || is_done(*parts_.front()) || !parts_.front()->ok) continue;
    } else if (!part.ok) {
      return tell_failure();
    }
    tell(part.text, part.kind);
    // Of several servers the first that did not do it speaks.
    if (memcached::is_error(part.kind)) return;
  }
}

// No server has answered.
void MemcachedCommand::tell_failure() {
  if (error_.empty())
    answer_ = quiet_ ? "" : "EN\r\n";
  else
    answer_ = error_;
}

void MemcachedCommand::tell(std::string& text, ReplyKind kind) {
  answer_.swap(text);
  if (is_swallowed(kind)) answer_.clear();
}

bool MemcachedCommand::is_done(const Part& part) noexcept {
  return part.ok && (part.kind == ReplyKind::deleted || part.kind == ReplyKind::meta_done);
}

// What the client has asked not to be told.
bool MemcachedCommand::is_swallowed(ReplyKind kind) const noexcept {
  if (!quiet_ || fenced_) return false;
  switch (verb_) {
    case Verb::meta_get:
      return kind == ReplyKind::end;
    case Verb::meta_set:
    case Verb::meta_delete:
      return kind == ReplyKind::meta_done;
    case Verb::meta_arithmetic:
      return kind == ReplyKind::meta_done || kind == ReplyKind::value;
    default:
      return false;
  }
}

void MemcachedCommand::count(const Part& part) {
  if (!part.ok || memcached::is_error(part.kind)) return count(*part.view, MemcachedResult::error);
  if (!memcached::is_retrieval(verb_)) return count(*part.view, result_of(verb_, part.kind));
  count(*part.view, MemcachedResult::hit, part.items.size());
  count(*part.view, MemcachedResult::miss, part.keys.size() - part.items.size());
}

void MemcachedCommand::count(PoolView& view, MemcachedResult result, std::size_t n) {
  if (const auto verb = counted_as(verb_))
    at(at(view.memcached_cells->commands, *verb), result).add(n);
}

bool MemcachedCommand::forget_memory() noexcept {
  constexpr std::size_t kMost = 16 * 1024;
  if (parts_.size() > 64 || keys_.capacity() > kMost) return false;
  const auto forget = [](std::string& text) {
    if (text.capacity() > kMost) std::string().swap(text);
  };
  forget(answer_);
  for (const auto& part : parts_) forget(part->text);
  return true;
}

}  // namespace clockwise::proxy
