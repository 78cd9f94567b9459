// The command of a memcached client about items that several servers hold.
//
// A read goes from owner to owner in rounds: all that one round did not find is asked of the next
// owners together, so that a server gets one command in each, and the client is answered once. What
// a later owner had is copied to those that had it not. A write is a ReplicaWrite.
#include <algorithm>
#include <utility>

#include "proxy/memcached_command.h"
#include "proxy/memcached_counts.h"
#include "proxy/memcached_session.h"

namespace clockwise::proxy {

using memcached::Command;
using memcached::Did;
using memcached::ReplyKind;
using memcached::Verb;
using metrics::MemcachedResult;

KeyMarks mark_of(std::string_view key) noexcept {
  return KeyMarks{1} << (std::hash<std::string_view>()(key) & 63);
}

// --- writes -------------------------------------------------------------------------------------

// False: no owner can be asked, and it is as if the item had one.
bool MemcachedCommand::write(PoolView& view, const Command& command, std::string_view data) {
  if (view.pool->ring->empty()) return false;
  view_ = &view;
  (void)first_owner(view, keys_, position_of(view, keys_), context_);  // counts it
  ++pending_;
  ReplicaWrite& write = context_.take_write();
  const bool begun = write.start(view, keys_, command, data, this);
  if (!begun) --pending_;
  if (begun && write.has_steps()) decided_ = mark_of(keys_);
  return begun;
}

void MemcachedCommand::on_written(const ReplicaWrite::Result& result) {
  const bool failed = !result.answered || memcached::did(verb_, result.kind) == Did::failed;
  count(*view_, failed ? MemcachedResult::error : result_of(verb_, result.kind));
  if (!result.answered || (failed && !result.first)) error_ = label_of(result);
  judge(error_.empty(), result.kind);
  quiet_ = quiet_ && !result.made;  // servers tell of what they make
  if (!noreply_) {
    std::string text(error_.empty() ? result.text : error_);
    tell(text, error_.empty() ? result.kind : ReplyKind::server_error);
  }
  part_done();
}

// What the client is told of a server that it does not know it has asked.
std::string MemcachedCommand::label_of(const ReplicaWrite::Result& result) const {
  constexpr std::string_view kError = "SERVER_ERROR ";
  std::string text(kError);
  text.append(result.server->name()).append(" ");
  if (!result.answered) return text.append(upstream::describe(result.failure)).append("\r\n");
  const std::size_t said = result.text.starts_with(kError) ? kError.size() : 0;
  return text.append(result.text.substr(said));
}

// --- reads --------------------------------------------------------------------------------------

// Whom to ask first. `keys`: of the command.
MemcachedCommand::Whom MemcachedCommand::begin_search(PoolView& view, std::uint32_t key,
                                                      std::uint32_t keys) {
  if (view.pool->ring->empty()) return whom(view, key_at(key));
  if (searches_.empty()) searches_.resize(keys);
  const ring::Position position = position_of(view, key_at(key));
  const auto place = first_owner(view, key_at(key), position, context_);
  searches_[key].place = static_cast<std::uint8_t>(place.value_or(kNoOwner));
  if (!place) return whom(view, key_at(key));
  searched_ |= mark_of(key_at(key));
  return {.view = &view,
          .server = &owner_at(view, position, *place),
          .home = &home_of(view, position),
          .stands_in = false,
          .asked = true};
}

// A read of one key; with the same line the next owner is asked.
void MemcachedCommand::search_with(Part& part, std::string_view line, const Command& command) {
  part.line = line;
  part.keys.push_back(0);
  part_of_.push_back(0);
  alone_ = memcached::reach_of(command) == memcached::Reach::first;
  sets_ = memcached::touch_of(command);
}

// All of a round is answered. False: it was the last.
bool MemcachedCommand::searches_on() {
  const std::uint32_t begun = std::exchange(round_, parts_used_);
  for (std::uint32_t i = begun; i < round_; ++i) take_stock(*parts_[i]);
  if (session_ == nullptr || alone_) return false;
  pending_ = 1;
  for (std::uint32_t key = 0; key < searches_.size(); ++key) ask_next(key);
  if (parts_used_ == round_) {
    pending_ = 0;
    return false;
  }
  if (memcached::is_retrieval(verb_)) {
    ask_parts(round_);
  } else {
    Part& part = *parts_[round_];
    ask(part,
        {.line = part.line, .data = {}, .shape = upstream::shape_of(verb_), .repeatable = true});
  }
  part_done();
  return true;
}

// What is known of its keys now.
void MemcachedCommand::take_stock(Part& part) {
  const bool answered = part.ok && !memcached::is_error(part.kind);
  part.failed = !answered;
  if (memcached::is_retrieval(verb_)) return take_stock_of_items(part, answered);
  Search& search = searches_.front();
  search.found = answered && part.kind != ReplyKind::end;
  if (answered && !search.found) search.missed |= 1U << search.place;
}

void MemcachedCommand::take_stock_of_items(Part& part, bool answered) {
  for (const Part::Item& item : part.items) searches_[part.keys[item.key]].found = true;
  if (part.ok && !answered) return take_back_error(part);
  if (!answered) return;
  for (const std::uint32_t key : part.keys)
    if (Search& search = searches_[key]; !search.found) search.missed |= 1U << search.place;
}

// What the server said in the place of END is told only where nobody answers.
void MemcachedCommand::take_back_error(Part& part) {
  const std::size_t end = part.items.empty() ? 0 : part.items.back().end;
  if (error_.empty() && part.view->pool->config.memcached.error_on_read)
    error_.assign(part.text, end);
  part.text.resize(end);
  part.kind = ReplyKind::end;
}

// Puts a key that was not found into the next round, if somebody is left to be asked.
void MemcachedCommand::ask_next(std::uint32_t key) {
  Search& search = searches_[key];
  PoolView& view = *parts_[part_of_[key]]->view;
  if (search.found || !has_replicas(view) || view.pool->ring->empty()) return;
  if (sets_ && *sets_ < 0 && has_expired(key)) return;
  const upstream::Owners owners = owners_of(view, position_of(view, key_at(key)));
  std::uint32_t place = search.place;
  do {
    if (++place >= owners.size()) return;
  } while (!can_be_asked(view, owners[place]) || has_failed(*view.memcached[owners[place]]));
  search.place = static_cast<std::uint8_t>(place);
  const Whom whom{.view = &view, .server = view.memcached[owners[place]], .asked = true};
  if (memcached::is_retrieval(verb_)) return add_key(part_for(whom), key);
  Part& part = add_part(whom);
  part.line = parts_.front()->line;
  part.keys.push_back(key);
  part_of_[key] = parts_used_ - 1;
}

// With a negative time the first of equal keys takes the item away from the others.
bool MemcachedCommand::has_expired(std::uint32_t key) const noexcept {
  for (std::uint32_t earlier = 0; earlier < key; ++earlier)
    if (searches_[earlier].found && key_at(earlier) == key_at(key)) return true;
  return false;
}

// A server that hangs costs a command its patience once.
bool MemcachedCommand::has_failed(const upstream::MemcachedServer& server) const noexcept {
  return std::any_of(parts_.begin(), parts_.begin() + round_,
                     [&](const auto& part) { return part->failed && part->server == &server; });
}

// --- what it comes to ---------------------------------------------------------------------------

void MemcachedCommand::end_search() {
  bool unanswered = false;
  for (std::uint32_t key = 0; key < searches_.size(); ++key) {
    const Search& search = searches_[key];
    const bool missed = !search.found && search.missed != 0;
    unanswered = unanswered || (!search.found && !missed);
    count(*parts_[part_of_[key]]->view, search.found ? MemcachedResult::hit
                                        : missed     ? MemcachedResult::miss
                                                     : MemcachedResult::error);
    if (!search.found || session_ == nullptr) continue;
    copy_back(key);
    if (sets_) touch_others(key);
  }
  if (!unanswered) error_.clear();
  if (!memcached::is_retrieval(verb_)) return tell_best();
  judge(false, ReplyKind::end);
  finish_retrieval();
}

// A hit, or a miss, or what the first had to say.
void MemcachedCommand::tell_best() {
  const auto end = parts_.begin() + parts_used_;
  auto best = parts_.begin();
  if (searches_.front().found)
    best += part_of_.front();
  else if (searches_.front().missed != 0)
    best = std::find_if(best, end, [](const auto& part) { return !part->failed; });
  Part& part = **best;
  judge(part.ok, part.kind);
  if (!part.ok) return tell_failure();
  tell(part.text, part.kind);
}

void MemcachedCommand::copy_back(std::uint32_t key) {
  const Search& search = searches_[key];
  if (search.missed == 0 || verb_ == Verb::meta_debug) return;
  Part& part = *parts_[part_of_[key]];
  PoolView& view = *part.view;
  const upstream::Owners owners = owners_of(view, position_of(view, key_at(key)));
  for (std::uint32_t place = 0; place < search.place; ++place) {
    const bool lacks = (search.missed & (1U << place)) != 0;
    if (lacks && can_be_asked(view, owners[place]))
      context_.backfills.start(view, *part.server, *view.memcached[owners[place]], key_at(key),
                               session_->listener().config().limits.buffered);
  }
}

// A read that sets a lifetime sets it on the other owners too; nobody waits for them.
void MemcachedCommand::touch_others(std::uint32_t key) {
  const Search& search = searches_[key];
  PoolView& view = *parts_[part_of_[key]]->view;
  if (!has_replicas(view) || search.place == kNoOwner) return;
  std::string coded, flags;
  context_.take_write().start(view, key_at(key),
                              memcached::touch_for(key_at(key), *sets_, coded, flags), {}, nullptr,
                              search.missed | (1U << search.place));
}

}  // namespace clockwise::proxy
