// The exchange whose pool is one of memcached servers: an item answers, or is written.
//
// In order: ask_item -> [read_upload] -> ask -> on_item_... -> answer_item | answer_write |
// go_to_fallback. What happens is one table in docs/memcached.md. Where several servers hold the
// item, exchange_item_replicas.cpp says whom else to ask.
#include <algorithm>
#include <ctime>

#include "cache/conditions.h"
#include "cache/lines.h"
#include "http/reply.h"
#include "memcached/key.h"
#include "proxy/exchange.h"
#include "proxy/item.h"
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

}  // namespace

// --- what is asked ------------------------------------------------------------------------------

// REQUIRES: Context::request is this request's head.
void Exchange::ask_item() {
  const config::Memcached& settings = view_->pool->config.memcached;
  asked_pool_ = true;
  const bool reads = http::is_read(method_);
  const bool writes = method_ == http::Method::put || method_ == http::Method::del;
  if (!reads && !(writes && settings.writable)) return refuse_item_method();
  if (!item_) item_ = std::make_unique<Item>(static_cast<ItemCall::Owner&>(*this));
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

// False: the exchange has gone another way.
bool Exchange::choose_item_server() {
  if (view_->pool->ring->empty()) {
    item_unavailable(503, "no server is on the ring of the pool");
    return false;
  }
  hash_ = position_of(*view_, item_->key);
  if (has_replicas(*view_) && choose_owner()) return true;
  const auto target = target_of(*view_, item_->key, hash_, context_);
  item_->server = target ? target->server : &home_of(*view_, hash_);
  if (target && target->stands_in() && item_->verb != Verb::get && item_->verb != Verb::gets)
    home_of(*view_, hash_).missed_write(item_->key);
  return true;
}

void Exchange::await_item() {
  phase_ = Phase::item;
  due_ = io::Deadlines::kNever;
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
  if (view_->fallback != nullptr) view_->memory->hedge_clock.set(*this, settings.budget);
  std::string& line = context_.text;
  line.assign(settings.etag ? "gets " : "get ").append(item_->key).append("\r\n");
  ask_server(line, {}, AnswerShape::values, true);
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
  if (item_->value.size() + part.data.size() > view_->largest_item) return item_too_large();
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
    context_.text.assign("delete ").append(item_->key).append("\r\n");
    (void)item_->server->ask(item_->check, {.line = context_.text,
                                            .data = {},
                                            .shape = AnswerShape::line,
                                            .repeatable = true,
                                            .patience = view_->pool->config.timeouts.response});
    item_->check.forget();
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
  item.value.append("\r\n");
  if (item.verb == Verb::set) {
    context_.text.assign("mg ").append(item.key).append("\r\n");
    (void)item.server->ask(item.check, {.line = context_.text,
                                        .data = {},
                                        .shape = AnswerShape::meta,
                                        .repeatable = true,
                                        .patience = view_->pool->config.timeouts.response});
  }
  send_write();
}

void Exchange::send_write() {
  if (has_replicas(*view_) && write_owners()) return;
  Item& item = *item_;
  std::string& line = context_.text;
  line.assign(memcached::name_of(item.verb)).append(" ").append(item.key).append(" ");
  line.append(std::to_string(item.flags)).append(" ").append(std::to_string(item.exptime));
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
  if (!choose_item_server()) return;
  if (has_replicas(*view_) && write_owners()) return;
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
  return true;
}

// A value that comes in one piece waits for the end of the answer behind it; of a larger one the
// last piece does.
void Exchange::on_item_value(std::string_view octets, std::uint32_t left) {
  Item& item = *item_;
  const config::Memcached& settings = view_->pool->config.memcached;
  const bool plain = settings.layout == config::Memcached::Layout::raw &&
                     (item.flags & settings.gzip_flag) == 0 && method_ == http::Method::get;
  if (item.begun || (plain && left > 0 && item.value.empty())) {
    if (left == 0) {
      item.value.assign(octets);
      return;
    }
    return relay_item(octets);
  }
  item.value.append(octets);
}

// The first piece brings the head with it.
void Exchange::relay_item(std::string_view octets) {
  context_.loop.refresh();
  context_.pieces.clear();
  if (!std::exchange(item_->begun, true)) {
    if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
    rescan_head();
    if (item_is_known()) {
      item_->begun = false;
      item_->value.assign(octets);
      return;
    }
    write_item_head(200, {}, item_->length);
  }
  context_.pieces.passing(octets);
  item_written(to_client_.send(session_->client(), context_.pieces));
}

void Exchange::on_item_answered() {
  Item& item = *item_;
  if (has_replicas(*view_) && read_elsewhere(memcached::is_error(item.kind))) return;
  context_.loop.refresh();
  if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
  count_item();
  if (item.begun) {
    item.whole = true;
    context_.pieces.clear();
    context_.pieces.passing(item.value);
    count_request(metrics::code_of(status_));
    return item_written(to_client_.send(session_->client(), context_.pieces));
  }
  rescan_upload_head();
  if (memcached::is_error(item.kind)) return item_refused();
  if (item.verb != Verb::get && item.verb != Verb::gets) return answer_write();
  if (!item.found) return item_missing();
  answer_item();
}

void Exchange::on_item_failed(CallFailure failure) {
  if (has_replicas(*view_) && read_elsewhere(true)) return;
  context_.loop.refresh();
  if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
  count_item_error();
  const Verb verb = item_->verb;
  if (verb != Verb::get && verb != Verb::gets) item_->server->missed_write(item_->key);
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

// All text is static.
void Exchange::item_unavailable(unsigned status, std::string_view text) {
  const bool reads = http::is_read(method_);
  if (reads && view_->fallback != nullptr) return go_to_fallback();
  reply(status, status == 504 ? "connection_timeout" : "destination_unavailable", text);
}

void Exchange::item_missing() {
  if (view_->fallback != nullptr) return go_to_fallback();
  reply(404, {}, "nothing is stored under this key");
}

// An error that the server has told.
void Exchange::item_refused() {
  if (item_->verb != Verb::get && item_->verb != Verb::gets) {
    if (item_->too_large) return reply(413, {}, "the value is larger than the server takes");
    if (item_->out_of_memory) return reply(507, {}, "the server has no memory for the value");
  }
  item_unavailable(502, "the memcached server answered with an error");
}

// Another pool answers, as if the request had been for it. Where its answer is to be kept, all who
// wait for the same item wait for one fetch.
void Exchange::go_to_fallback() {
  if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
  if (item_) item_->call.forget();
  watch_due_ = io::Deadlines::kNever;
  phase_ = Phase::routing;
  const bool fills = view_->cache.cache != nullptr;
  if (fills && ask_cache()) return;
  leave_pool();
  if (!fills && view_->cache.cache && ask_cache()) return;
  choose_server();
}

// From here on the fallback is the pool of this request, if it is not yet.
void Exchange::leave_pool() {
  if (view_->fallback == nullptr) return;
  PoolView* const next = view_->fallback;
  --view_->users;
  view_ = next;
  ++view_->users;
}

namespace {

// A write that nobody waits for.
class ItemWrite final : public upstream::MemcachedCall, ReplicaWrite::Waiter {
 public:
  static void send(PoolView& view, Context& context, const memcached::Command& command,
                   std::string_view data) {
    const std::string key(command.key);
    const ring::Position position = position_of(view, key);
    if (has_replicas(view) && send_to_owners(view, context, command, data)) return;
    const auto target = target_of(view, key, position, context);
    if (!target) return;
    std::string line;
    memcached::append_line(command, line);
    auto* write = new ItemWrite(*view.memcached_cells, target->server, key);
    const upstream::MemcachedRequest request{.line = line,
                                             .data = data,
                                             .shape = AnswerShape::line,
                                             .repeatable = true,
                                             .patience = view.pool->config.timeouts.response};
    if (!target->server->ask(*write, request)) write->on_failed(CallFailure::away);
  }

 private:
  ItemWrite(metrics::MemcachedCells& cells, upstream::MemcachedServer* server, std::string key)
      : cells_(cells), server_(server), key_(std::move(key)) {}

  static bool send_to_owners(PoolView& view, Context& context, const memcached::Command& command,
                             std::string_view data) {
    auto write = std::unique_ptr<ItemWrite>(new ItemWrite(*view.memcached_cells, nullptr, {}));
    const bool sent = context.take_write().start(view, command.key, command, data, write.get());
    if (sent) (void)write.release();  // ends with its answer
    return sent;
  }
  void on_written(const ReplicaWrite::Result& result) override {
    stored_ = result.answered && result.kind == ReplyKind::stored;
    on_answered();
  }

  bool on_reply(const Reply& reply) override {
    stored_ = reply.kind == ReplyKind::stored;
    return memcached::answers(Verb::set, reply);
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override {
    at(at(cells_.commands, MemcachedVerb::set),
       stored_ ? MemcachedResult::stored : MemcachedResult::error)
        .add();
    delete this;
  }
  void on_failed(CallFailure) override {
    at(at(cells_.commands, MemcachedVerb::set), MemcachedResult::error).add();
    server_->missed_write(key_);
    delete this;
  }

  metrics::MemcachedCells& cells_;
  upstream::MemcachedServer* const server_;  // null: the owners
  const std::string key_;
  bool stored_ = false;
};

}  // namespace

// What the fallback answered goes into the pool, for as long as it may be given. REQUIRES: the fill
// is done, and its answer kept.
void Exchange::fill_item() {
  if (fetch_->items == nullptr) return;
  PoolView& view = *fetch_->items;
  const config::Memcached& settings = view.pool->config.memcached;
  const cache::ObjectRef object = fetch_->fill->object();
  const cache::Terms& terms = object->terms();
  const bool raw = settings.layout == config::Memcached::Layout::raw;
  const std::string_view coding = object->field("content-encoding");
  const bool packed = coding == "gzip" && settings.gzip_flag != 0;
  // A raw value can tell neither a status nor whom it is for.
  if (!object->selectors().empty() || (raw && object->status() != 200)) return;
  if (raw && !coding.empty() && !packed) return;
  // Not for the time in which it might be given stale: who finds it there cannot tell its age.
  const std::int64_t lifetime = terms.lifetime - cache::current_age(terms, now_ms());
  if (lifetime <= 0 || terms.validate_always) return;
  std::string head;
  if (!raw) {
    head = "HTTP/1.1 " + std::to_string(object->status()) + " " +
           std::string(http::reason_phrase(object->status())) + "\r\n";
    head.append(object->head()).append("\r\n");
  }
  const std::uint64_t size = object->size();
  if (head.size() + size > view.largest_item) {
    at(at(view.memcached_cells->commands, MemcachedVerb::set), MemcachedResult::not_stored).add();
    return;
  }
  std::string data = std::move(head);
  data.reserve(data.size() + size + 2);
  for (cache::Cursor cursor(*object, 0); cursor.offset() < size;) {
    const std::string_view run = cursor.run(size);
    data.append(run);
    cursor.advance(run.size());
  }
  memcached::Command command;
  command.verb = Verb::set;
  command.key = fetch_->item_key;
  command.flags = raw && packed ? settings.gzip_flag : 0;
  command.exptime = memcached::exptime_of(lifetime, std::time(nullptr));
  command.length = static_cast<std::uint32_t>(data.size());
  data.append("\r\n");
  ItemWrite::send(view, context_, command, data);
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
    } else if (unpack(item.value, kMostUnpacked, item.unpacked)) {
      answer.lines = "Vary: Accept-Encoding\r\n";
      answer.body = item.unpacked;
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
      return item.verb == Verb::cas ? send_write() : remove_item();
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
  auto& commands = view_->memcached_cells->commands;
  const bool error = memcached::is_error(item_->kind);
  const auto count = [&](MemcachedVerb verb, MemcachedResult result) {
    at(at(commands, verb), error ? MemcachedResult::error : result).add();
  };
  const bool stored = item_->kind == ReplyKind::stored;
  const MemcachedResult written = stored ? MemcachedResult::stored : MemcachedResult::not_stored;
  switch (item_->verb) {
    case Verb::get:
    case Verb::gets:
      return count(MemcachedVerb::get, item_->found ? MemcachedResult::hit : MemcachedResult::miss);
    case Verb::add:
      return count(MemcachedVerb::add, written);
    case Verb::replace:
      return count(MemcachedVerb::replace, written);
    case Verb::set:
    case Verb::cas:
      return count(MemcachedVerb::set, written);
    default: {
      const bool missed =
          item_->kind == ReplyKind::not_found || item_->kind == ReplyKind::meta_not_found;
      return count(MemcachedVerb::remove, missed ? MemcachedResult::miss : MemcachedResult::hit);
    }
  }
}

void Exchange::count_item_error() {
  item_->kind = ReplyKind::error;
  count_item();
}

}  // namespace clockwise::proxy
