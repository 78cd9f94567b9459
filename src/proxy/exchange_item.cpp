// The exchange whose pool is one of memcached servers: an item answers, or is written.
//
// In order: ask_item -> [read_upload] -> ask -> on_item_... -> answer_item | answer_write |
// go_to_fallback. What happens is one table in docs/memcached.md. Where several servers hold the
// item, exchange_item_replicas.cpp says whom else to ask.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "cache/conditions.h"
#include "cache/lines.h"
#include "http/normalize.h"
#include "http/reply.h"
#include "memcached/key.h"
#include "proxy/exchange.h"
#include "proxy/item.h"
#include "proxy/memcached_counts.h"
#include "proxy/memcached_target.h"
#include "proxy/session.h"

namespace clockwise::proxy {

using cache::lines_of;
using memcached::Reply;
using memcached::ReplyKind;
using memcached::Verb;
using metrics::at;
using metrics::MemcachedResult;
using metrics::MemcachedVerb;
using upstream::AnswerShape;
using upstream::CallFailure;

namespace {

// Of a packed value, for clients that do not take gzip.
constexpr std::size_t kMostUnpacked = 64U << 20;

constexpr std::string_view kLineEnd = "\r\n";

std::string delete_line(std::string_view key) {
  return std::string("delete ").append(key).append(kLineEnd);
}

// A write whose condition does not hold counts as not stored, whatever the server calls it.
MemcachedResult outcome_of(Verb verb, ReplyKind kind, bool found) noexcept {
  if (memcached::is_error(kind)) return MemcachedResult::error;
  if (memcached::is_storage(verb))
    return kind == ReplyKind::stored ? MemcachedResult::stored : MemcachedResult::not_stored;
  const bool missed =
      memcached::is_read(verb) ? !found : result_of(verb, kind) == MemcachedResult::miss;
  return missed ? MemcachedResult::miss : MemcachedResult::hit;
}

void count_command(metrics::MemcachedCells& cells, Verb verb, ReplyKind kind, bool found) {
  if (const auto counted = counted_as(verb))
    at(at(cells.commands, *counted), outcome_of(verb, kind, found)).add();
}

// A write that nobody waits for, or not any more. What it holds is let go of with its answer: the
// lease of the item, since who waits for that is to find the item, and room for the value.
class ItemWrite final : public upstream::MemcachedCall, ReplicaWrite::Waiter {
 public:
  struct Of {
    upstream::MemcachedServer& server;
    std::string key;
    Verb verb;
  };

  static void send(PoolView& view, Context& context, Of of, std::string_view line,
                   std::string_view data, std::shared_ptr<ItemLease> lease = nullptr) {
    upstream::MemcachedServer& server = of.server;
    auto* write = new ItemWrite(view, context, std::move(of));
    write->lease_ = std::move(lease);
    write->held_ = data.size();
    context.memcached_held += data.size();
    const upstream::MemcachedRequest request{.line = line,
                                             .data = data,
                                             .shape = AnswerShape::line,
                                             .repeatable = true,
                                             .patience = view.pool->config.timeouts.response};
    if (!server.ask(*write, request)) write->on_failed(CallFailure::away);
  }

  // The same on all owners of the item. False: none of them can be asked.
  [[nodiscard]] static bool send_to_owners(PoolView& view, Context& context,
                                           upstream::MemcachedServer& home,
                                           const memcached::Command& command, std::string_view data,
                                           std::shared_ptr<ItemLease> lease) {
    auto* write = new ItemWrite(view, context, {home, std::string(command.key), command.verb});
    if (!context.take_write().start(view, command.key, command, data, write)) {
      delete write;
      return false;
    }
    write->lease_ = std::move(lease);
    write->held_ = data.size();
    context.memcached_held += data.size();
    return true;
  }

  // What a client has asked for that is gone. REQUIRES: a write is under way.
  static void take_over(PoolView& view, Context& context, Item& item) {
    auto* write = new ItemWrite(view, context, {*item.server, item.key, item.verb});
    write->held_ = std::exchange(item.held, 0);
    item.call.hand_over(*write);
  }

 private:
  ItemWrite(PoolView& view, Context& context, Of of)
      : view_(view), context_(context), of_(std::move(of)) {
    ++view_.users;
  }
  ~ItemWrite() override {
    lease_.reset();
    context_.memcached_held -= held_;
    --view_.users;
  }

  bool on_reply(const Reply& reply) override {
    kind_ = reply.kind;
    return memcached::answers(of_.verb, reply);
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override { end(kind_); }
  void on_failed(CallFailure) override {
    of_.server.missed_write(of_.key);
    end(ReplyKind::error);
  }
  void on_written(const ReplicaWrite::Result& result) override {
    end(result.answered ? result.kind : ReplyKind::error);
  }
  void end(ReplyKind kind) {
    count_command(*view_.memcached_cells, of_.verb, kind, false);
    delete this;
  }

  PoolView& view_;
  Context& context_;
  const Of of_;
  ReplyKind kind_ = ReplyKind::error;
  std::shared_ptr<ItemLease> lease_;
  std::size_t held_ = 0;
};

}  // namespace

// --- what is asked ------------------------------------------------------------------------------

// REQUIRES: Context::request is this request's head.
void Exchange::ask_item() {
  const config::Memcached& settings = view_->pool->config.memcached;
  asked_pool_ = true;
  const bool reads = http::is_read(method_);
  const bool writes = method_ == http::Method::put || method_ == http::Method::del;
  if (!reads && !(writes && settings.writable)) return refuse_item_method();
  if (leads_nowhere()) return refuse_item_path();
  if (!item_)
    item_ = std::make_unique<Item>(static_cast<ItemCall::Owner&>(*this), context_.memcached_held);
  item_->forget();
  const ItemKey key = item_key(key_of(view_->pool->key), settings, item_->key);
  if (key.refused) return reply(414, {}, "the key of the item would be longer than 250 bytes");
  if (key.digested) view_->memcached_cells->keys_digested.add();
  if (reads) return read_item();
  begin_write();
}

void Exchange::refuse_item_method() {
  if (view_->fallback != nullptr) return go_to_fallback();
  item_allow_ = view_->pool->config.memcached.writable ? "GET, HEAD, PUT, DELETE" : "GET, HEAD";
  reply(405, {}, "items can only be asked for in these ways: see Allow");
}

// Of a path above the root there is no decoded form, and the key of another is not taken for it.
bool Exchange::leads_nowhere() const {
  const std::string_view uri = context_.request.uri;
  return view_->pool->config.ring.key.find("{path:decoded}") != std::string::npos &&
         http::leaves_root(uri.substr(0, uri.find('?')));
}

void Exchange::refuse_item_path() {
  at(session_->listener().cells().request_errors, metrics::RequestError::malformed).add();
  reply(400, {}, "the path leads above its root");
}

// False: the exchange has gone another way.
bool Exchange::choose_item_server() {
  if (view_->pool->ring->empty()) {
    item_unavailable(503, "no server is on the ring of the pool");
    return false;
  }
  hash_ = position_of(*view_, item_->key);
  if (has_replicas(*view_) && choose_owner()) return true;
  const auto target = target_of(*view_, item_->key, hash_, context_);
  take_item_server(target ? target->index : view_->pool->ring->owner(hash_));
  return true;
}

void Exchange::take_item_server(ring::ServerIndex index) {
  Item& item = *item_;
  item.index = index;
  item.server = view_->memcached[index];
  item.stands_in = item.server != &home_of(*view_, hash_);
  if (item.stands_in && !reads_item()) tell_home();
}

// What a stand-in does is news for the owner, should it come back with what it held. What is
// deleted is deleted there too, where that can be reached.
void Exchange::tell_home() {
  upstream::MemcachedServer& home = home_of(*view_, hash_);
  if (item_->verb != Verb::remove || home.away()) return home.missed_write(item_->key);
  ItemWrite::send(*view_, context_, {home, item_->key, Verb::remove}, delete_line(item_->key), {});
}

bool Exchange::reads_item() const noexcept {
  return item_->verb == Verb::get || item_->verb == Verb::gets;
}

// `failover: next`: the next server on the ring is asked in the place of one that failed; for a
// write only where nothing of it can have been done. False: there is nobody, or it may not be.
bool Exchange::try_next_item_server(CallFailure failure) {
  Item& item = *item_;
  const bool undone = failure == CallFailure::refused || failure == CallFailure::away;
  if (item.begun || (!reads_item() && !undone)) return false;
  if (tried_.size() >= view_->pool->config.retry.attempts) return false;
  tried_.push_back(item.index);
  const auto next = usable_server(*view_, hash_, tried_);
  if (!next) return false;
  count_item_error();
  item.found = item.crowded = false;
  if (reads_item()) item.value.clear();
  take_item_server(*next);
  send_item();
  return true;
}

void Exchange::send_item() {
  if (reads_item()) return send_read();
  if (item_->verb == Verb::remove || item_->verb == Verb::meta_delete) return send_removal();
  check_item();
  send_write();
}

void Exchange::await_item() {
  phase_ = Phase::item;
  awaited_ = Side::server;
  due_ = item_->again ? item_->late_ns / 1'000'000 : io::Deadlines::kNever;
  watch_client();
  update_deadline();
}

void Exchange::ask_server(std::string_view line, std::string_view data, AnswerShape shape,
                          bool repeatable) {
  await_item();
  const upstream::MemcachedRequest request{.line = line,
                                           .data = data,
                                           .shape = shape,
                                           .repeatable = repeatable,
                                           .patience = view_->pool->config.timeouts.response};
  if (!item_->server->ask(item_->call, request)) on_item_failed(CallFailure::away);
}

void Exchange::read_item() {
  const config::Memcached& settings = view_->pool->config.memcached;
  item_->verb = settings.etag ? Verb::gets : Verb::get;
  if (!choose_item_server()) return;
  if (view_->fallback != nullptr && !item_->again) {
    view_->memory->hedge_clock.set(*this, settings.budget);
    const std::chrono::nanoseconds budget = settings.budget;
    item_->late_ns = context_.loop.now_ns() + static_cast<std::uint64_t>(budget.count());
  }
  send_read();
}

void Exchange::send_read() {
  std::string& line = context_.text;
  line.assign(memcached::name_of(item_->verb)).append(" ").append(item_->key).append("\r\n");
  ask_server(line, {}, AnswerShape::values, true);
}

// Another proxy has stored it while this one waited: out of the same budget, to a tick of the
// clock.
void Exchange::read_item_again() {
  leave_fill();
  stored_.object.reset();
  watch_due_ = io::Deadlines::kNever;
  rescan_head();
  item_->forget();
  item_->again = true;
  read_item();
}

void Exchange::stop_budget() {
  if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
  if (awaited_ == Side::server) due_ = io::Deadlines::kNever;
}

// The body has to be whole before its length is known, which goes first.
void Exchange::begin_write() {
  const http::RequestHead& head = context_.request;
  const std::string_view octets = session_->client().in().view();
  const config::Memcached& settings = view_->pool->config.memcached;
  const auto if_match = lines_of(octets, head.fields, "if-match");
  const auto if_none_match = lines_of(octets, head.fields, "if-none-match");
  if (!if_match.empty()) {
    const auto uniques = uniques_of(if_match);
    if (uniques && uniques->empty()) return reply(412, {}, "the item has none of these tags");
    if (uniques)
      item_->uniques = *uniques;
    else
      item_->must_exist = true;
  }
  if (!if_none_match.empty()) {
    const bool any = !uniques_of(if_none_match);
    if (!any) return reply(400, {}, "If-None-Match of a write can only be *");
    item_->must_be_new = true;
  }
  if (method_ == http::Method::del) return remove_item();

  const auto flags = put_flags(octets, head.fields, settings);
  if (!flags) return reply(415, {}, "the pool keeps content plain or as gzip only");
  item_->flags = *flags;
  item_->exptime = memcached::exptime_of(
      std::max<std::int64_t>(0, put_lifetime(octets, head.fields, settings)), std::time(nullptr));
  if (put_lifetime(octets, head.fields, settings) < 0) item_->exptime = -1;
  if (settings.layout == config::Memcached::Layout::http)
    item_->value = stored_answer_head(octets, head.fields);
  if (head.body.kind == http::BodyKind::length && head.body.length > view_->largest_item)
    return item_too_large();
  phase_ = Phase::upload;
  const bool waits = std::ranges::any_of(lines_of(octets, head.fields, "expect"),
                                         [](std::string_view) { return true; });
  if (waits && minor_version_ > 0 && !request_body_.done() &&
      session_->client().in().size() == head_size_) {
    context_.pieces.clear();
    context_.pieces.staying("HTTP/1.1 100 Continue\r\n\r\n");
    if (to_client_.send(session_->client(), context_.pieces) == Outbox::Result::failed)
      return client_left();
  }
  request_octets_ = 0;
  session_->client().in().consume(head_size_);
  head_size_ = 0;
  read_upload();
}

void Exchange::read_upload() {
  io::Stream& client = session_->client();
  io::Buffer& in = client.in();
  const auto part = request_body_.read(in.data(), in.size());
  if (part.state == BodyReader::State::bad) return request_body_bad(request_body_.error());
  const std::uint64_t limit = session_->listener().config().limits.body_size;
  if (limit != 0 && request_body_.octets() > limit) return body_too_large();
  const std::size_t size = item_->value.size() + part.data.size();
  if (size > view_->largest_item) return item_too_large();
  if (!item_->hold(size, most_held())) return item_crowded();
  if (const std::uint64_t left = request_body_.spliceable(); left > 0)
    item_->value.reserve(size + left + kLineEnd.size());
  item_->value.append(part.data);
  in.consume(part.consumed);
  if (request_body_.done()) return write_item();
  if (!client.read_begun()) client.release_empty_block();
  client.read_soon();
  await(Side::client, session_->listener().config().timeouts.body);
}

// A server that refuses a value deletes the one before; so do we.
void Exchange::item_too_large() {
  item_->verb = Verb::remove;
  at(session_->listener().cells().request_errors, metrics::RequestError::body_too_large).add();
  if (!view_->pool->ring->empty() && choose_item_server() && !remove_from_owners()) {
    ItemWrite::send(*view_, context_, {*item_->server, item_->key, Verb::remove},
                    delete_line(item_->key), {});
  }
  keep_alive_ = keep_alive_ && request_body_.done();
  reply(413, {}, "the value is larger than the servers take");
}

void Exchange::write_item() {
  Item& item = *item_;
  item.verb = !item.uniques.empty() ? Verb::cas
              : item.must_be_new    ? Verb::add
              : item.must_exist     ? Verb::replace
                                    : Verb::set;
  if (!choose_item_server()) return;
  item.length = static_cast<std::uint32_t>(item.value.size());
  item.value.append(kLineEnd);
  // The connection to the server keeps one more until that is answered.
  if (!item.hold(2 * item.value.size(), most_held())) return item_crowded();
  send_item();
}

// Whether a set will replace something.
void Exchange::check_item() {
  Item& item = *item_;
  if (item.verb != Verb::set) return;
  item.check.there = false;
  context_.text.assign("mg ").append(item.key).append("\r\n");
  (void)item.server->ask(item.check, {.line = context_.text,
                                      .data = {},
                                      .shape = AnswerShape::meta,
                                      .repeatable = true,
                                      .patience = view_->pool->config.timeouts.response});
}

void Exchange::send_write() {
  if (has_replicas(*view_) && write_owners()) return;
  Item& item = *item_;
  const std::int64_t exptime =
      item.stands_in
          ? memcached::exptime_of_stand_in(item.exptime, view_->pool->config.memcached.failover_ttl)
          : item.exptime;
  std::string& line = context_.text;
  line.assign(memcached::name_of(item.verb)).append(" ").append(item.key).append(" ");
  line.append(std::to_string(item.flags)).append(" ").append(std::to_string(exptime));
  line.append(" ").append(std::to_string(item.length));
  if (item.verb == Verb::cas) line.append(" ").append(std::to_string(item.uniques.back()));
  line.append("\r\n");
  ask_server(line, item.value, AnswerShape::line, item.verb == Verb::set);
}

void Exchange::remove_item() {
  Item& item = *item_;
  if (item.must_be_new) return reply(412, {}, "the item is to be deleted only where there is none");
  const bool only_one = !item.uniques.empty();
  item.verb = only_one ? Verb::meta_delete : Verb::remove;
  if (choose_item_server()) send_removal();
}

void Exchange::send_removal() {
  if (has_replicas(*view_) && write_owners()) return;
  const Item& item = *item_;
  const bool only_one = item.verb == Verb::meta_delete;
  std::string& line = context_.text;
  line.assign(only_one ? "md " : "delete ").append(item.key);
  if (only_one) line.append(" C").append(std::to_string(item.uniques.back()));
  line.append("\r\n");
  ask_server(line, {}, AnswerShape::line, !only_one);
}

// --- what came ----------------------------------------------------------------------------------

bool Exchange::on_item_reply(const Reply& reply) {
  Item& item = *item_;
  item.kind = reply.kind;
  if (!memcached::answers(item.verb, reply)) return false;
  item.note_refusal(reply.line);
  if (reply.kind != ReplyKind::value) return true;
  if (item.found || reply.key != item.key) return false;
  item.found = true;
  item.flags = reply.flags;
  item.length = reply.length;
  item.unique = memcached::unique_at(reply.number, item.place);
  item.crowded = !item.hold(reply.length, most_held());
  return true;
}

// A value that comes in one piece waits for the end of the answer behind it; of a larger one the
// last piece does.
void Exchange::on_item_value(std::string_view octets, std::uint32_t left) {
  Item& item = *item_;
  if (item.crowded) return;
  const config::Memcached& settings = view_->pool->config.memcached;
  const bool plain = settings.layout == config::Memcached::Layout::raw &&
                     (item.flags & settings.gzip_flag) == 0 && method_ == http::Method::get;
  const bool relays = plain && left > 0 && item.value.empty() && item.length > Item::kSmall;
  if (item.begun)
    context_.pieces.clear();
  else if (!relays || !begin_relay())
    return keep_value(octets, left);
  relay_item(octets, left);
}

void Exchange::keep_value(std::string_view octets, std::uint32_t left) {
  std::string& value = item_->value;
  value.reserve(value.size() + octets.size() + left);
  value.append(octets);
}

// The head of a value that goes out while it comes. False: the client has it already.
bool Exchange::begin_relay() {
  context_.loop.refresh();
  stop_budget();
  rescan_head();
  if (item_is_known()) return false;
  context_.pieces.clear();
  write_item_head(200, {}, item_->length);
  item_->begun = true;
  return true;
}

// Behind what Context::pieces hold: the head, before the first piece. The connection to the server
// is there for others too, so what the client does not take at once is kept here.
void Exchange::relay_item(std::string_view octets, std::uint32_t left) {
  Item& item = *item_;
  context_.loop.refresh();
  if (left == 0 || !item.value.empty() || !to_client_.empty()) {
    keep_value(octets, left);
    if (left > 0) item.ready = item.value.size();
    return;
  }
  context_.pieces.passing(octets);
  item_written(to_client_.send(session_->client(), context_.pieces));
}

// What was kept of it.
void Exchange::send_kept() {
  Item& item = *item_;
  context_.pieces.clear();
  context_.pieces.staying(std::string_view(item.value).substr(item.sent, item.ready - item.sent));
  std::size_t staid = 0;
  const auto result = to_client_.send_some(session_->client(), context_.pieces, staid);
  item.sent += staid;
  if (item.sent == item.value.size()) {
    item.value.clear();
    item.ready = item.sent = 0;
  }
  item_written(result);
}

void Exchange::on_item_answered() {
  Item& item = *item_;
  if (has_replicas(*view_) && read_elsewhere(memcached::is_error(item.kind))) return;
  context_.loop.refresh();
  stop_budget();
  count_item();
  if (item.begun) {
    item.whole = true;
    item.ready = item.value.size();
    count_request(metrics::code_of(status_));
    if (item_waits_) return;
    return send_kept();
  }
  rescan_upload_head();
  if (item.crowded) return item_crowded();
  if (memcached::is_error(item.kind)) return item_refused();
  if (!reads_item()) return answer_write();
  if (!item.found) return item_missing();
  answer_item();
}

void Exchange::on_item_failed(CallFailure failure) {
  if (has_replicas(*view_) && read_elsewhere(true)) return;
  context_.loop.refresh();
  if (!reads_item()) item_->server->missed_write(item_->key);
  const bool of_owners = has_replicas(*view_) && item_->place != kNoOwner;
  if (!of_owners && try_next_item_server(failure)) return;
  stop_budget();
  count_item_error();
  if (item_->begun) return cut("the server broke off in the middle of the value");
  rescan_upload_head();
  switch (failure) {
    case CallFailure::timed_out:
      return item_unavailable(504, "the memcached server did not answer in time");
    case CallFailure::refused:
      return item_unavailable(502, "no connection to the memcached server");
    case CallFailure::closed:
      return item_unavailable(502, "the memcached server closed the connection");
    case CallFailure::garbled:
      return item_unavailable(502, "the memcached server answered something else");
    case CallFailure::away:
      return item_unavailable(502, "the memcached server is away");
  }
}

// The head of a request whose body was read is gone from the buffer.
void Exchange::rescan_upload_head() {
  if (head_size_ > 0) rescan_head();
}

// What the pool costs is bounded where somebody else can answer.
void Exchange::pool_is_late() {
  count_item_error();
  item_->forget();
  rescan_head();
  item_unavailable(504, "the memcached server did not answer in time");
}

// A write goes on without its client.
void Exchange::leave_item() {
  if (!std::exchange(asked_pool_, false) || !item_) return;
  if (item_->call.under_way() && !reads_item()) ItemWrite::take_over(*view_, context_, *item_);
  item_->forget();
}

// All text is static.
void Exchange::item_unavailable(unsigned status, std::string_view text) {
  const bool reads = http::is_read(method_);
  if (reads && view_->fallback != nullptr) return go_to_fallback();
  reply(status, status == 504 ? "connection_timeout" : "destination_unavailable", text);
}

// All that clients make the worker hold would be too much with this one.
void Exchange::item_crowded() {
  if (http::is_read(method_) && view_->fallback != nullptr) return go_to_fallback();
  at(session_->listener().cells().rejected, metrics::Rejected::memory).add();
  keep_alive_ = keep_alive_ && request_body_.done();
  reply(503, "proxy_internal_response", "too many values are on their way to or from slow clients");
}

std::uint64_t Exchange::most_held() const noexcept {
  return session_->listener().config().limits.buffered;
}

void Exchange::item_missing() {
  item_->missed = true;
  if (view_->fallback != nullptr) return go_to_fallback();
  reply(404, {}, "nothing is stored under this key");
}

// An error that the server has told.
void Exchange::item_refused() {
  if (!reads_item()) {
    if (item_->too_large) return reply(413, {}, "the value is larger than the server takes");
    if (item_->out_of_memory) return reply(507, {}, "the server has no memory for the value");
  }
  item_unavailable(502, "the memcached server answered with an error");
}

// Another pool answers, as if the request had been for it. Where its answer is to be kept, all who
// wait for the same item wait for one fetch.
void Exchange::go_to_fallback() {
  stop_budget();
  if (item_) item_->call.forget();
  tried_.clear();
  watch_due_ = io::Deadlines::kNever;
  phase_ = Phase::routing;
  const bool fills = view_->cache.cache != nullptr;
  if (fills && ask_cache()) return;
  leave_pool();
  if (!fills && view_->cache.cache && ask_cache()) return;
  choose_server();
}

// It is still the request of a memcached pool, whose fallback is asked for what the pool lacks; a
// fallback may have a cache of its own.
bool Exchange::fetches_item() const noexcept { return asked_pool_ && view_->fallback != nullptr; }

// From here on the fallback is the pool of this request, if it is not yet.
void Exchange::leave_pool() {
  if (view_->fallback == nullptr) return;
  PoolView* const next = view_->fallback;
  --view_->users;
  view_ = next;
  ++view_->users;
}

namespace {

bool is_packed(const cache::Object& object, const config::Memcached& settings) {
  return settings.layout == config::Memcached::Layout::raw && settings.gzip_flag != 0 &&
         object.field("content-encoding") == "gzip";
}

// What stands before the body; nothing: the pool has no place for such an answer.
std::optional<std::string> front_of(const cache::Object& object,
                                    const config::Memcached& settings) {
  if (!object.selectors().empty()) return std::nullopt;
  if (settings.layout == config::Memcached::Layout::http)
    return fmt::format("HTTP/1.1 {} {}\r\n{}\r\n", object.status(),
                       http::reason_phrase(object.status()), object.head());
  // A raw value can tell neither a status nor whom it is for.
  const bool plain = object.field("content-encoding").empty();
  if (object.status() != 200 || (!plain && !is_packed(object, settings))) return std::nullopt;
  return std::string();
}

bool fits(const cache::Object& object, const PoolView& view) {
  const auto front = front_of(object, view.pool->config.memcached);
  return front && front->size() + object.size() <= view.largest_item;
}

}  // namespace

// Others can only wait for what the pool can keep; of what it had to be given before this is known.
bool Exchange::wants_lease(const cache::ObjectRef& before) const {
  return item_->missed && !item_->again && !wish_.authorization &&
         (!before || fits(*before, *view_));
}

void Exchange::ask_lease() {
  phase_ = Phase::sharing;
  ItemLease::Owner& owner = *this;
  if (!fetch_->lease || !fetch_->lease->start(owner)) ask_origin();
}

void Exchange::on_lease(ItemLease::Result result) {
  if (result == ItemLease::Result::found) {
    count_request(metrics::Code::c2xx);
    fetch_->use.cache->store->found_elsewhere(*fetch_->fill);
    return end_fetch();
  }
  rescan_head();
  ask_origin();
}

namespace {

void not_filled(const PoolView& view) {
  at(at(view.memcached_cells->commands, MemcachedVerb::set), MemcachedResult::not_stored).add();
}

}  // namespace

// What the fallback answered goes into the pool, for as long as it may be given. REQUIRES: the fill
// is done, and its answer kept.
void Exchange::fill_item() {
  if (fetch_->items == nullptr) return;
  PoolView& view = *fetch_->items;
  const config::Memcached& settings = view.pool->config.memcached;
  const cache::ObjectRef object = fetch_->fill->object();
  const cache::Terms& terms = object->terms();
  auto front = front_of(*object, settings);
  if (!front) return;
  // Not for the time in which it might be given stale: who finds it there cannot tell its age.
  const std::int64_t lifetime = terms.lifetime - cache::current_age(terms, now_ms());
  if (lifetime <= 0 || terms.validate_always) return;
  if (view.pool->ring->empty()) return not_filled(view);
  const std::uint64_t size = object->size();
  if (!fits(*object, view)) return not_filled(view);
  std::string data = std::move(*front);
  data.reserve(data.size() + size + 2);
  for (cache::Cursor cursor(*object, 0); cursor.offset() < size;) {
    const std::string_view run = cursor.run(size);
    data.append(run);
    cursor.advance(run.size());
  }
  data.append(kLineEnd);
  if (context_.memcached_held + data.size() > most_held()) return not_filled(view);
  memcached::Command command;
  command.verb = Verb::set;
  command.key = fetch_->item_key;
  command.flags = is_packed(*object, settings) ? settings.gzip_flag : 0;
  command.exptime = memcached::exptime_of(lifetime, std::time(nullptr));
  command.length = static_cast<std::uint32_t>(data.size() - kLineEnd.size());
  const ring::Position position = position_of(view, command.key);
  if (has_replicas(view) && ItemWrite::send_to_owners(view, context_, home_of(view, position),
                                                      command, data, fetch_->lease)) {
    fetch_->lease.reset();
    return;
  }
  const auto target = target_of(view, command.key, position, context_);
  if (!target) return;
  if (target->stands_in())
    command.exptime = memcached::exptime_of_stand_in(command.exptime, settings.failover_ttl);
  std::string line;
  memcached::append_line(command, line);
  ItemWrite::send(view, context_, {*target->server, fetch_->item_key, Verb::set}, line, data,
                  std::move(fetch_->lease));
}

// --- answering ----------------------------------------------------------------------------------

// The client has the value already, and a 304 went out. REQUIRES: Context::request is its head.
bool Exchange::item_is_known() {
  if (!view_->pool->config.memcached.etag) return false;
  const auto tags =
      lines_of(session_->client().in().view(), context_.request.fields, "if-none-match");
  if (tags.empty()) return false;
  const std::string etag = etag_of(item_->unique);
  const cache::Validators stored{.etag = etag, .last_modified = {}, .date = {}, .received = 0};
  return cache::not_modified(tags, {}, stored, 0);
}

bool Exchange::unpack_item() {
  Item& item = *item_;
  const std::size_t most = std::min<std::uint64_t>(kMostUnpacked, item.room(most_held()));
  if (unpack(item.value, most, item.unpacked))
    return item.hold(item.value.size() + item.unpacked.size(), UINT64_MAX);
  item.crowded = most < kMostUnpacked && item.unpacked.size() >= most;
  return false;
}

void Exchange::answer_item() {
  Item& item = *item_;
  const config::Memcached& settings = view_->pool->config.memcached;
  ItemAnswer answer{.status = 200, .lines = {}, .body = item.value};
  if (settings.layout == config::Memcached::Layout::http) {
    auto stored = read_stored_answer(item.value);
    if (!stored) return item_unavailable(502, "the value is no answer of HTTP");
    answer = std::move(*stored);
  } else if ((item.flags & settings.gzip_flag) != 0) {
    if (accepts_gzip(session_->client().in().view(), context_.request.fields)) {
      answer.lines = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
    } else if (unpack_item()) {
      answer.lines = "Vary: Accept-Encoding\r\n";
      answer.body = item.unpacked;
    } else if (item.crowded) {
      return item_crowded();
    } else {
      return item_unavailable(502, "the value cannot be unpacked");
    }
  }
  const bool known = answer.status == 200 && item_is_known();
  if (known) answer.body = {};
  context_.pieces.clear();
  write_item_head(known ? 304 : answer.status, answer.lines, answer.body.size());
  if (!no_body_answer_) context_.pieces.staying(answer.body);
  item.whole = true;
  count_request(metrics::code_of(status_));
  item_written(to_client_.send(session_->client(), context_.pieces));
}

// The head into Context::pieces. REQUIRES: Context::request is this request's head.
void Exchange::write_item_head(unsigned status, std::string_view lines, std::uint64_t length) {
  const config::Memcached& settings = view_->pool->config.memcached;
  status_ = static_cast<std::uint16_t>(status);
  no_body_answer_ = method_ == http::Method::head || status == 304 || status == 204;
  keep_alive_ = keep_alive_ && session_->may_go_on();
  answer_started_ = true;
  http::Gather& out = context_.gather;
  out.clear();
  if (status == 200)
    out.write("HTTP/1.1 200 OK\r\nDate: ", context_.date(), "\r\n");
  else
    out.write("HTTP/1.1 ", std::to_string(status), " ", http::reason_phrase(status),
              "\r\nDate: ", context_.date(), "\r\n");
  if (settings.layout == config::Memcached::Layout::raw && status != 304)
    out.write("Content-Type: ", content_type(context_.request.uri, settings), "\r\n");
  if (settings.etag) out.write("ETag: ", etag_of(item_->unique), "\r\n");
  if (status != 304 && status != 204) out.write("Content-Length: ", std::to_string(length), "\r\n");
  std::string& text = context_.text;
  text.clear();
  if (session_->listener().config().debug_headers) {
    text.append("Clockwise-Server: ").append(item_->server->name()).append("\r\n");
    add_placement(text);
  }
  out.write(lines, "Via: 1.1 clockwise\r\nCache-Status: clockwise; hit\r\n", text,
            !keep_alive_          ? "Connection: close\r\n\r\n"
            : minor_version_ == 0 ? "Connection: keep-alive\r\n\r\n"
                                  : "\r\n");
  context_.pieces.begin_with(out.slices());
}

void Exchange::answer_write() {
  Item& item = *item_;
  switch (item.kind) {
    case ReplyKind::stored: {
      const bool created = item.verb == Verb::add || (item.verb == Verb::set && !item.check.there);
      return created ? reply(201, {}, "stored") : reply(204, {}, {});
    }
    case ReplyKind::deleted:
    case ReplyKind::meta_done:
      return reply(204, {}, {});
    case ReplyKind::exists:
    case ReplyKind::meta_exists:
      item.uniques.pop_back();
      if (item.uniques.empty()) return reply(412, {}, "the item has another tag");
      return item.verb == Verb::cas ? send_write() : send_removal();
    case ReplyKind::not_stored:
      return reply(412, {}, item.must_be_new ? "the item exists" : "there is no such item");
    case ReplyKind::not_found:
    case ReplyKind::meta_not_found:
      if (item.verb == Verb::remove && !item.must_exist)
        return reply(404, {}, "nothing is stored under this key");
      return reply(412, {}, "there is no such item");
    default:
      return item_unavailable(502, "the memcached server answered something else");
  }
}

void Exchange::item_written(Outbox::Result result) {
  count_octets();
  switch (result) {
    case Outbox::Result::failed:
      return client_left();
    case Outbox::Result::blocked:
      if (!std::exchange(item_waits_, true)) session_->client().wait_writable();
      return answer_awaits(Side::client);
    case Outbox::Result::sent:
      break;
  }
  if (item_->begun && item_->sent < item_->ready) return send_kept();
  if (item_->whole) return finish();
  due_ = io::Deadlines::kNever;  // the server has a time of its own
  update_deadline();
}

void Exchange::item_writable() {
  item_waits_ = false;
  item_written(to_client_.flush(session_->client()));
}

// --- telling ------------------------------------------------------------------------------------

void Exchange::count_item() {
  count_command(*view_->memcached_cells, item_->verb, item_->kind, item_->found);
}

void Exchange::count_item_error() {
  item_->kind = ReplyKind::error;
  count_item();
}

}  // namespace clockwise::proxy
