#include "proxy/replica_write.h"

#include <bit>
#include <utility>

#include "proxy/memcached_target.h"

namespace clockwise::proxy {

using memcached::Command;
using memcached::Did;
using memcached::Reach;
using memcached::Reply;
using memcached::ReplyKind;
using memcached::Verb;
using upstream::CallFailure;

namespace {

constexpr std::uint32_t bit(std::uint32_t place) noexcept { return 1U << place; }

}  // namespace

// --- what a server says -------------------------------------------------------------------------

bool ReplicaWrite::Call::on_reply(const Reply& reply) {
  if (!memcached::answers(verb, reply)) return false;
  kind = reply.kind;
  memcached::append_answer(reply, place, text);
  return true;
}

void ReplicaWrite::Call::on_value(std::string_view octets, std::uint32_t left) {
  text.append(octets).append(left > 0 ? "" : "\r\n");
}

void ReplicaWrite::Call::on_answered() {
  answered = true;
  write_.call_done();
}

void ReplicaWrite::Call::on_failed(CallFailure why) {
  failure = why;
  server->missed_write(write_.key_);
  write_.call_done();
}

// --- what is asked ------------------------------------------------------------------------------

bool ReplicaWrite::start(PoolView& view, std::string_view key, const Command& command,
                         std::string_view data, Waiter* waiter, std::uint32_t left_out) {
  key_ = key;
  waiter_ = waiter;
  find_owners(view, left_out);
  pending_ = 1;
  if (present_ != 0) begin(command, data);
  if (--pending_ > 0) return true;
  if (calls_used_ == 0) tell_the_absent();
  let_go();
  return false;
}

void ReplicaWrite::find_owners(PoolView& view, std::uint32_t left_out) {
  view_ = &view;
  ++view.users;
  owners_.clear();
  calls_used_ = 0;
  present_ = 0;
  const upstream::Owners owners = owners_of(view, position_of(view, key_));
  for (std::uint32_t place = 0; place < owners.size(); ++place) {
    const bool out = (left_out & bit(place)) != 0;
    owners_.push_back(out ? nullptr : view.memcached[owners[place]]);
    if (!out && can_be_asked(view, owners[place])) present_ |= bit(place);
  }
}

void ReplicaWrite::begin(const Command& command, std::string_view data) {
  std::string flags, line;
  Command first = command;
  made_ = false;
  if (memcached::reach_of(command) == Reach::decided) {
    step_ = Step::decide;
    const auto place = static_cast<std::uint32_t>(std::countr_zero(present_));
    keep_for_later(memcached::follower_of(command, flags), data);
    first = memcached::command_at(command, place, flags);
    memcached::append_line(first, line);
    return ask(place, first.verb, line, data);
  }
  step_ = Step::all;
  if (memcached::makes(command)) {
    step_ = Step::change;
    keep_for_later(command, data);
    first = memcached::without_making(command, flags);
  }
  memcached::append_line(first, line);
  tell_the_absent();
  ask_all(first.verb, line, data);
}

void ReplicaWrite::keep_for_later(const Command& command, std::string_view data) {
  later_verb_ = command.verb;
  later_line_.clear();
  memcached::append_line(command, later_line_);
  later_data_ = data;
}

void ReplicaWrite::ask_all(Verb verb, std::string_view line, std::string_view data) {
  for (std::uint32_t place = 0; place < owners_.size(); ++place)
    if ((present_ & bit(place)) != 0) ask(place, verb, line, data);
}

void ReplicaWrite::ask(std::uint32_t place, Verb verb, std::string_view line,
                       std::string_view data) {
  if (calls_used_ == calls_.size()) calls_.push_back(std::make_unique<Call>(*this));
  Call& call = *calls_[calls_used_++];
  call.server = owners_[place];
  call.place = place;
  call.verb = verb;
  call.kind = ReplyKind::error;
  call.failure = CallFailure::away;
  call.answered = false;
  call.counts = step_ != Step::follow && step_ != Step::settle;
  call.text.clear();
  const upstream::MemcachedRequest request{.line = line,
                                           .data = data,
                                           .shape = upstream::shape_of(verb),
                                           .repeatable = memcached::is_repeatable(verb),
                                           .patience = view_->pool->config.timeouts.response};
  if (!call.server->ask(call, request)) return call.server->missed_write(key_);
  ++pending_;
  const std::size_t octets = line.size() + data.size();
  held_ += octets;
  context_.memcached_held += octets;
}

// Who is away does not see what the others do.
void ReplicaWrite::tell_the_absent() {
  for (std::uint32_t place = 0; place < owners_.size(); ++place)
    if (owners_[place] != nullptr && (present_ & bit(place)) == 0)
      owners_[place]->missed_write(key_);
}

// --- what follows -------------------------------------------------------------------------------

void ReplicaWrite::call_done() {
  if (--pending_ > 0) return;
  do {
    pending_ = 1;
    if (!goes_on()) return end();
  } while (--pending_ == 0);
}

// False: there is nothing more to do.
bool ReplicaWrite::goes_on() {
  switch (step_) {
    case Step::change:
      return make() || settle();
    case Step::decide:
      return follow();
    case Step::all:
    case Step::follow:
      return settle();
    case Step::settle:
      break;
  }
  return false;
}

// Nobody has the item: it is made on all.
bool ReplicaWrite::make() {
  for (std::uint32_t i = 0; i < calls_used_; ++i)
    if (!calls_[i]->answered || calls_[i]->did() != Did::missed) return false;
  step_ = Step::all;
  made_ = true;
  calls_used_ = 0;
  ask_all(later_verb_, later_line_, later_data_);
  return true;
}

bool ReplicaWrite::follow() {
  const Call& first = *calls_.front();
  if (!first.answered || first.did() != Did::done) return false;
  step_ = Step::follow;
  tell_the_absent();
  present_ &= ~bit(first.place);
  ask_all(later_verb_, later_line_, later_data_);
  return true;
}

// What one owner found nothing for while a later one had it, a copy may have brought there since;
// and who could not do what another did has an item that is old.
bool ReplicaWrite::settle() {
  step_ = Step::settle;
  std::uint32_t done = 0;  // bit n: the owner at place n has done it
  const std::uint32_t asked = calls_used_;
  for (std::uint32_t i = 0; i < asked; ++i)
    if (calls_[i]->answered && calls_[i]->did() == Did::done) done |= bit(calls_[i]->place);
  if (done == 0) return false;
  std::string key, line;
  const Command deletion = memcached::deletion_of(key_, key);
  memcached::append_line(deletion, line);
  for (std::uint32_t i = 0; i < asked; ++i) {
    const Call& call = *calls_[i];
    const bool overtaken = call.did() == Did::missed && (done >> call.place) != 0;
    if (call.answered && (overtaken || call.did() == Did::failed))
      ask(call.place, deletion.verb, line, {});
  }
  return calls_used_ > asked;
}

// --- what it comes to ---------------------------------------------------------------------------

ReplicaWrite::Result ReplicaWrite::answer_of(const Call& call) const noexcept {
  return {.answered = call.answered,
          .first = &call == calls_.front().get(),
          .made = made_,
          .kind = call.kind,
          .failure = call.failure,
          .text = call.text,
          .server = call.server};
}

ReplicaWrite::Result ReplicaWrite::result() const noexcept {
  const std::span calls(calls_.data(), calls_used_);
  for (const auto& call : calls)
    if (!call->answered) return answer_of(*call);
  for (const auto& call : calls)
    if (call->did() == Did::failed) return answer_of(*call);
  for (const auto& call : calls)
    if (call->counts && call->did() != Did::missed) return answer_of(*call);
  return answer_of(*calls.front());
}

void ReplicaWrite::end() {
  if (waiter_ != nullptr) waiter_->on_written(result());
  let_go();
}

void ReplicaWrite::let_go() {
  constexpr std::size_t kKept = 16 * 1024;
  context_.memcached_held -= std::exchange(held_, 0);
  --std::exchange(view_, nullptr)->users;
  if (later_data_.capacity() > kKept) std::string().swap(later_data_);
  context_.give_back(*this);
}

}  // namespace clockwise::proxy
