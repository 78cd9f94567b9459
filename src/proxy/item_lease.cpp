#include "proxy/item_lease.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "memcached/key.h"

namespace clockwise::proxy {

using memcached::Reply;
using memcached::ReplyKind;
using upstream::AnswerShape;
using upstream::CallFailure;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;
// From the first look again to the second, and at most.
constexpr std::uint64_t kFirstInterval = 2 * kMillisecond;
constexpr std::uint64_t kLongestInterval = 50 * kMillisecond;

// Servers count in whole seconds, so that of the last one nothing may be left. Nobody waits longer
// than the budget, so a longer life would help nobody.
std::int64_t lock_seconds(const PoolView& view) {
  const auto budget = view.pool->config.memcached.budget;
  return std::chrono::ceil<std::chrono::seconds>(budget).count() + 1;
}

upstream::MemcachedRequest request(const PoolView& view, std::string_view line, bool repeatable,
                                   AnswerShape shape = AnswerShape::line) {
  return {.line = line,
          .data = {},
          .shape = shape,
          .repeatable = repeatable,
          .patience = view.pool->config.timeouts.response};
}

// The end of a lock, which nobody waits for. Ends with its answer.
class Unlock final : public upstream::MemcachedCall {
 public:
  static void send(upstream::MemcachedServer& server, const PoolView& view,
                   const std::string& lock) {
    auto unlock = std::make_unique<Unlock>();
    if (server.ask(*unlock, request(view, "delete " + lock + "\r\n", true))) (void)unlock.release();
  }

 private:
  bool on_reply(const Reply& reply) override {
    return memcached::answers(memcached::Verb::remove, reply);
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override { delete this; }
  void on_failed(CallFailure) override { delete this; }
};

}  // namespace

ItemLease::ItemLease(Context& context, const PoolView& view, upstream::MemcachedServer& server,
                     std::string key, std::uint64_t until_ns)
    : context_(context),
      view_(view),
      server_(server),
      key_(std::move(key)),
      lock_(memcached::lock_key(key_, view.pool->config.ring.scheme.key_namespace)),
      until_ns_(until_ns),
      timer_(context.loop.io),
      interval_ns_(kFirstInterval) {}

ItemLease::~ItemLease() { release(); }

bool ItemLease::start(Owner& owner) {
  owner_ = &owner;
  if (context_.loop.now_ns() >= until_ns_ || !lock()) return false;
  set_timer(until_ns_);
  return true;
}

bool ItemLease::lock() {
  const std::int64_t seconds = lock_seconds(view_);
  held_until_ns_ = context_.loop.now_ns() + static_cast<std::uint64_t>(seconds - 1) * kSecond;
  step_ = Step::locking;
  const std::string line = "add " + lock_ + " 0 " + std::to_string(seconds) + " 0\r\n\r\n";
  return server_.ask(*this, request(view_, line, false));
}

// Behind the lock, not beside it: whoever had it before has stored the item by then.
void ItemLease::look() {
  step_ = Step::looking;
  kind_ = ReplyKind::end;
  if (server_.may_know_meta() &&
      server_.ask(*this, request(view_, "mg " + key_ + "\r\n", true, AnswerShape::meta)))
    return;
  looked();
}

bool ItemLease::on_reply(const Reply& reply) {
  kind_ = reply.kind;
  return memcached::answers(
      step_ == Step::locking ? memcached::Verb::add : memcached::Verb::meta_get, reply);
}

void ItemLease::on_answered() {
  context_.loop.refresh();
  step_ == Step::locking ? locked() : looked();
}

void ItemLease::on_failed(CallFailure) {
  context_.loop.refresh();
  kind_ = ReplyKind::end;
  step_ == Step::locking ? end(Result::none) : looked();
}

void ItemLease::locked() {
  if (memcached::is_error(kind_)) return end(Result::none);
  held_ = kind_ == ReplyKind::stored;
  look();
}

void ItemLease::looked() {
  if (kind_ == ReplyKind::meta_done) {
    release();
    return end(Result::found);
  }
  if (held_) return end(Result::won);
  wait();
}

void ItemLease::wait() {
  step_ = Step::waiting;
  set_timer(std::min(until_ns_, context_.loop.now_ns() + interval_ns_));
  interval_ns_ = std::min(2 * interval_ns_, kLongestInterval);
}

void ItemLease::set_timer(std::uint64_t at_ns) {
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at_ns)));
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self && !error) self->on_time();
  });
}

void ItemLease::on_time() {
  if (step_ == Step::over) return;
  if (context_.loop.refresh() >= until_ns_) return end(Result::none);
  if (step_ != Step::waiting) return;
  if (!lock()) return end(Result::none);
  set_timer(until_ns_);
}

void ItemLease::end(Result result) {
  step_ = Step::over;
  forget();
  timer_.cancel();
  owner_->on_lease(result);
}

void ItemLease::release() {
  if (!std::exchange(held_, false)) return;
  if (context_.loop.now_ns() < held_until_ns_) Unlock::send(server_, view_, lock_);
}

}  // namespace clockwise::proxy
