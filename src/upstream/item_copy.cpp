#include "upstream/item_copy.h"

#include <ctime>

#include "memcached/base64.h"
#include "memcached/key.h"

namespace clockwise::upstream {

using memcached::has_meta_flag;
using memcached::Reply;
using memcached::ReplyKind;

namespace {

constexpr std::size_t kKept = 16 * 1024;
// A server's clock goes in seconds, and so may round twice.
constexpr std::int64_t kRounding = 2;

}  // namespace

void ItemCopy::start(MemcachedServer& from, MemcachedServer& to, std::string_view key,
                     std::chrono::milliseconds patience) {
  from_ = &from;
  to_ = &to;
  key_ = key;
  patience_ = patience;
  copy_ = 0;
  fit_ = false;
  ask(*from_, Step::read, "mg ", " f t v c");
}

void ItemCopy::ask(MemcachedServer& server, Step step, std::string_view verb,
                   std::string_view flags) {
  step_ = step;
  kind_ = ReplyKind::end;
  const bool plain = memcached::is_key(key_);
  line_.assign(verb);
  plain ? void(line_.append(key_)) : memcached::append_base64(key_, line_);
  line_.append(flags).append(plain ? "\r\n" : " b\r\n");
  const MemcachedRequest request{.line = line_,
                                 .data = step == Step::add ? value_ : std::string_view(),
                                 .shape = AnswerShape::meta,
                                 .repeatable = step != Step::add,
                                 .patience = patience_};
  if (!server.ask(*this, request)) on_failed(CallFailure::away);
}

// --- what comes ---------------------------------------------------------------------------------

bool ItemCopy::on_reply(const Reply& reply) {
  kind_ = reply.kind;
  unique_seen_ = memcached::meta_number<std::uint64_t>(reply.rest, 'c');
  left_seen_ = memcached::meta_number<std::int64_t>(reply.rest, 't');
  switch (step_) {
    case Step::read:
      if (kind_ == ReplyKind::value) read_item(reply);
      return (kind_ == ReplyKind::value && reply.key.empty()) || kind_ == ReplyKind::end ||
             memcached::is_error(kind_);
    case Step::look:
      return kind_ != ReplyKind::value && memcached::answers(memcached::Verb::meta_get, reply);
    case Step::add:
      return memcached::answers(memcached::Verb::meta_set, reply);
    case Step::forget:
      break;
  }
  return memcached::answers(memcached::Verb::meta_delete, reply);
}

// Of an item that was marked as stale, or made for whoever asked first, one client has been told to
// store another one.
void ItemCopy::read_item(const Reply& reply) {
  unique_ = unique_seen_;
  left_ = left_seen_;
  flags_ = memcached::meta_number<std::uint32_t>(reply.rest, 'f');
  read_at_ = loop_.now();
  const bool whole = has_meta_flag(reply.rest, 'c') && has_meta_flag(reply.rest, 't') &&
                     has_meta_flag(reply.rest, 'f');
  const bool marked = has_meta_flag(reply.rest, 'W') || has_meta_flag(reply.rest, 'X') ||
                      has_meta_flag(reply.rest, 'Z');
  fit_ = whole && !marked && left_ != 0 && reply.length <= to_->largest_item() &&
         owner_.hold(reply.length);
  value_.clear();
  if (fit_) value_.reserve(reply.length + 2);
}

void ItemCopy::on_value(std::string_view octets, std::uint32_t) {
  if (fit_) value_.append(octets);
}

void ItemCopy::on_answered() {
  const bool error = memcached::is_error(kind_);
  switch (step_) {
    case Step::read:
      if (error) return end(Result::failed);
      return fit_ ? add() : end(Result::unfit);
    case Step::add:
      if (error) return end(Result::failed);
      if (kind_ != ReplyKind::meta_done) return end(Result::present);
      copy_ = unique_seen_;
      return look_again();
    case Step::look:
      return is_unchanged() ? end(Result::copied) : forget_copy();
    case Step::forget:
      if (!error) return end(Result::outdated);
      to_->missed_write(key_);
      return end(Result::failed);
  }
}

// What was to be added may be there, seen by nobody.
void ItemCopy::on_failed(CallFailure) {
  switch (step_) {
    case Step::read:
      return end(Result::failed);
    case Step::add:
      return look_again();
    case Step::look:
      return forget_copy();
    case Step::forget:
      to_->missed_write(key_);
      return end(Result::failed);
  }
}

// --- what follows -------------------------------------------------------------------------------

void ItemCopy::add() {
  const std::int64_t exptime = left_ < 0 ? 0 : memcached::exptime_of(left_, std::time(nullptr));
  const std::string flags = " " + std::to_string(value_.size()) + " ME F" + std::to_string(flags_) +
                            " T" + std::to_string(exptime) + " c";
  value_.append("\r\n");
  ask(*to_, Step::add, "ms ", flags);
}

void ItemCopy::look_again() {
  if (value_.capacity() > kKept) std::string().swap(value_);
  ask(*from_, Step::look, "mg ", " c t");
}

// A unique lasts through a change of the lifetime.
bool ItemCopy::is_unchanged() const noexcept {
  if (kind_ != ReplyKind::meta_done || unique_seen_ != unique_) return false;
  if (left_ < 0 || left_seen_ < 0) return left_ == left_seen_;
  const auto passed = static_cast<std::int64_t>(loop_.now() - read_at_) / 1000 + kRounding;
  return left_seen_ <= left_ && left_ - left_seen_ <= passed;
}

void ItemCopy::forget_copy() {
  const std::string condition = copy_ == 0 ? "" : " C" + std::to_string(copy_);
  ask(*to_, Step::forget, "md ", condition);
}

void ItemCopy::end(Result result) {
  if (value_.capacity() > kKept) std::string().swap(value_);
  owner_.on_copied(result);
}

}  // namespace clockwise::upstream
