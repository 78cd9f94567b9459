#include "proxy/memcached_command.h"

#include <algorithm>
#include <charconv>

#include "proxy/memcached_session.h"

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

AnswerShape shape_of(Verb verb) noexcept {
  if (memcached::is_retrieval(verb)) return AnswerShape::values;
  return memcached::is_meta(verb) ? AnswerShape::meta : AnswerShape::line;
}

}  // namespace

// --- what a server says -------------------------------------------------------------------------

bool MemcachedCommand::Part::on_reply(const Reply& reply) {
  if (!memcached::answers(command_.verb_, reply.kind)) return false;
  kind = reply.kind;
  if (memcached::is_retrieval(command_.verb_) && kind == ReplyKind::value) return on_item(reply);
  if (memcached::is_retrieval(command_.verb_) && kind == ReplyKind::end) return true;
  text.append(reply.line).append(kLineEnd);
  return true;
}

// Exactly the keys that were asked for, in their order; some may be missing.
bool MemcachedCommand::Part::on_item(const Reply& reply) {
  while (next_key < keys.size() && command_.key_at(keys[next_key]) != reply.key) ++next_key;
  if (next_key == keys.size()) return false;
  items.push_back({static_cast<std::uint32_t>(next_key++), 0});
  text.append(reply.line).append(kLineEnd);
  return true;
}

void MemcachedCommand::Part::on_value(std::string_view octets, std::uint32_t left) {
  if (octets.size() + left > 16384 && text.capacity() < text.size() + octets.size() + left + 2)
    text.reserve(text.size() + octets.size() + left + 2 + kEnd.size());
  text.append(octets);
  if (left > 0) return;
  text.append(kLineEnd);
  if (!items.empty()) items.back().end = text.size();
}

void MemcachedCommand::Part::on_answered() {
  ok = true;
  command_.part_done();
}

void MemcachedCommand::Part::on_failed(CallFailure failure) { command_.fail(*this, failure); }

// --- what is asked ------------------------------------------------------------------------------

void MemcachedCommand::begin(MemcachedSession& session, Verb verb, std::uint32_t size) {
  session_ = &session;
  verb_ = verb;
  size_ = size;
  noreply_ = quiet_ = error_on_read_ = false;
  pending_ = 1;
  parts_used_ = 0;
  keys_.clear();
  key_ends_.clear();
  part_of_.clear();
  error_.clear();
  answer_.clear();
}

MemcachedCommand::Part& MemcachedCommand::add_part() {
  if (parts_used_ == parts_.size()) parts_.push_back(std::make_unique<Part>(*this));
  Part& part = *parts_[parts_used_++];
  part.server = nullptr;
  part.cells = nullptr;
  part.line.clear();
  part.text.clear();
  part.keys.clear();
  part.items.clear();
  part.next_key = part.next_item = part.taken = 0;
  part.kind = ReplyKind::end;
  part.ok = false;
  return part;
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
      return answer_here(session.version());
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
  PoolView* const view = key.empty() ? nullptr : session.listener().pool_for_key(key);
  if (view == nullptr || view->pool->ring->empty()) return part_done();
  const ring::Position position = position_of(*view, key);
  const auto target = target_of(*view, key, position, context_);
  Part& part = add_part();
  part.cells = view->memcached_cells;
  keys_ = key;
  key_ends_.push_back(static_cast<std::uint32_t>(key.size()));
  part.server = target ? target->server : &home_of(*view, position);
  std::string& line = context_.text;
  line.assign("delete ").append(key).append(kLineEnd);
  ask(part, {.line = line,
             .data = {},
             .shape = AnswerShape::line,
             .repeatable = true,
             .patience = view->pool->config.timeouts.response});
  part_done();
}

void MemcachedCommand::answer_here(std::string_view text) {
  answer_ = text;
  part_done();
}

// One key, one server.
void MemcachedCommand::start_single(const Command& command, std::string_view data) {
  std::string& scratch = context_.key;
  const std::string_view key = memcached::ring_key(command, scratch);
  PoolView& view = *session_->listener().pool_for_key(key);
  error_on_read_ = view.pool->config.memcached.error_on_read;
  Part& part = add_part();
  part.cells = view.memcached_cells;
  keys_ = key;
  key_ends_.push_back(static_cast<std::uint32_t>(key.size()));
  part.keys.push_back(0);
  if (view.pool->ring->empty()) {
    ++pending_;
    fail(part, CallFailure::away);
    return part_done();
  }
  const ring::Position position = position_of(view, key);
  const auto target = target_of(view, key, position, context_);
  part.server = target ? target->server : &home_of(view, position);
  Command sent = command;
  if (target && target->stands_in() && !is_read()) {
    const auto most = view.pool->config.memcached.failover_ttl.count() / 1000;
    if (sent.exptime == 0 || sent.exptime > most) sent.exptime = most;
    home_of(view, position).missed_write(keys_);
  }
  std::string& line = context_.text;
  line.clear();
  memcached::append_line(sent, line);
  ask(part, {.line = line,
             .data = data,
             .shape = shape_of(verb_),
             .repeatable = memcached::is_repeatable(verb_),
             .patience = view.pool->config.timeouts.response});
  part_done();
}

// Keys of one server are asked for together.
void MemcachedCommand::start_retrieval(const Command& command) {
  std::string_view rest = command.rest;
  for (std::string_view key = command.key; !key.empty(); key = memcached::next_word(rest)) {
    keys_.append(key);
    key_ends_.push_back(static_cast<std::uint32_t>(keys_.size()));
  }
  std::chrono::milliseconds patience{0};
  for (std::size_t i = 0; i < key_ends_.size(); ++i) {
    const std::string_view key = key_at(i);
    PoolView& view = *session_->listener().pool_for_key(key);
    patience = view.pool->config.timeouts.response;
    error_on_read_ = error_on_read_ || view.pool->config.memcached.error_on_read;
    upstream::MemcachedServer* server = nullptr;
    if (!view.pool->ring->empty()) {
      const ring::Position position = position_of(view, key);
      const auto target = target_of(view, key, position, context_);
      server = target ? target->server : &home_of(view, position);
    }
    std::uint32_t at = 0;
    while (at < parts_used_ && parts_[at]->server != server) ++at;
    if (at == parts_used_) {
      Part& part = add_part();
      part.server = server;
      part.cells = view.memcached_cells;
      part.line.append(memcached::name_of(verb_));
      if (verb_ == Verb::gat || verb_ == Verb::gats)
        part.line.append(" ").append(std::to_string(command.exptime));
    }
    Part& part = *parts_[at];
    part.line.append(" ").append(key);
    part.keys.push_back(static_cast<std::uint32_t>(i));
    part_of_.push_back(at);
  }
  for (std::uint32_t i = 0; i < parts_used_; ++i) {
    Part& part = *parts_[i];
    part.line.append(kLineEnd);
    ask(part, {.line = part.line,
               .data = {},
               .shape = AnswerShape::values,
               .repeatable = true,
               .patience = patience});
  }
  part_done();
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
  for (upstream::MemcachedServer* server : view.memcached) {
    Part& part = add_part();
    part.server = server;
    part.cells = view.memcached_cells;
    ask(part, {.line = line,
               .data = {},
               .shape = AnswerShape::line,
               .repeatable = true,
               .patience = view.pool->config.timeouts.response});
  }
  part_done();
}

void MemcachedCommand::ask(Part& part, const upstream::MemcachedRequest& request) {
  ++pending_;
  if (part.server == nullptr || !part.server->ask(part, request)) fail(part, CallFailure::away);
}

// --- what it comes to ---------------------------------------------------------------------------

bool MemcachedCommand::is_read() const noexcept {
  return memcached::is_retrieval(verb_) || verb_ == Verb::meta_get || verb_ == Verb::meta_debug;
}

std::string_view MemcachedCommand::key_at(std::size_t i) const noexcept {
  const std::size_t begin = i == 0 ? 0 : key_ends_[i - 1];
  return std::string_view(keys_).substr(begin, key_ends_[i] - begin);
}

void MemcachedCommand::fail(Part& part, CallFailure failure) {
  // Of an item that has not come whole nothing is given.
  if (!part.items.empty() && part.items.back().end == 0) part.items.pop_back();
  part.text.resize(part.items.empty() ? 0 : part.items.back().end);
  if (part.server != nullptr && !is_read() && verb_ != Verb::flush_all)
    part.server->missed_write(keys_);
  if (error_.empty()) {
    error_.append("SERVER_ERROR ");
    if (part.server != nullptr)
      error_.append(part.server->name()).append(" ").append(upstream::describe(failure));
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
  for (std::uint32_t i = 0; i < parts_used_; ++i) count(*parts_[i]);
  if (memcached::is_retrieval(verb_))
    finish_retrieval();
  else if (parts_used_ > 0)
    finish_single();
  if (session_ != nullptr)
    session_->command_done();
  else
    context_.give_back(*this);
}

// The items in the order of the client's keys.
void MemcachedCommand::finish_retrieval() {
  const bool failed = !error_.empty() && error_on_read_;
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
    if (told_error && error_on_read_) told = part.text;
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
    if (!part.ok) {
      if (is_read() && !error_on_read_)
        answer_ = quiet_ ? "" : "EN\r\n";
      else
        answer_ = error_;
      return;
    }
    answer_.swap(part.text);
    if (is_swallowed(part)) answer_.clear();
    // Of several servers the first that did not do it speaks.
    if (memcached::is_error(part.kind)) return;
  }
}

// What the client has asked not to be told.
bool MemcachedCommand::is_swallowed(const Part& part) const noexcept {
  if (!quiet_) return false;
  switch (verb_) {
    case Verb::meta_get:
      return part.kind == ReplyKind::end;
    case Verb::meta_set:
    case Verb::meta_delete:
    case Verb::meta_arithmetic:
      return part.kind == ReplyKind::meta_done;
    default:
      return false;
  }
}

void MemcachedCommand::count(const Part& part) {
  if (part.cells == nullptr) return;
  using metrics::MemcachedVerb;
  MemcachedVerb verb = MemcachedVerb::get;
  switch (verb_) {
    case Verb::set:
    case Verb::cas:
    case Verb::meta_set:
      verb = MemcachedVerb::set;
      break;
    case Verb::add:
      verb = MemcachedVerb::add;
      break;
    case Verb::replace:
      verb = MemcachedVerb::replace;
      break;
    case Verb::append:
    case Verb::prepend:
      verb = MemcachedVerb::append;
      break;
    case Verb::incr:
    case Verb::decr:
    case Verb::meta_arithmetic:
      verb = MemcachedVerb::incr;
      break;
    case Verb::remove:
    case Verb::meta_delete:
      verb = MemcachedVerb::remove;
      break;
    case Verb::touch:
      verb = MemcachedVerb::touch;
      break;
    case Verb::get:
    case Verb::gets:
    case Verb::gat:
    case Verb::gats:
    case Verb::meta_get:
      break;
    default:
      return;
  }
  auto& cells = at(part.cells->commands, verb);
  if (!part.ok || memcached::is_error(part.kind)) return at(cells, MemcachedResult::error).add();
  if (memcached::is_retrieval(verb_)) {
    at(cells, MemcachedResult::hit).add(part.items.size());
    at(cells, MemcachedResult::miss).add(part.keys.size() - part.items.size());
    return;
  }
  switch (part.kind) {
    case ReplyKind::end:
    case ReplyKind::not_found:
    case ReplyKind::meta_not_found:
      return at(cells, MemcachedResult::miss).add();
    case ReplyKind::not_stored:
    case ReplyKind::exists:
    case ReplyKind::meta_not_stored:
    case ReplyKind::meta_exists:
      return at(cells, MemcachedResult::not_stored).add();
    case ReplyKind::stored:
      return at(cells, MemcachedResult::stored).add();
    default:
      return at(cells, verb_ == Verb::meta_set ? MemcachedResult::stored : MemcachedResult::hit)
          .add();
  }
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
