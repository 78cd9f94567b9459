// The exchange whose pool has a cache: what is stored answers, or a fetch that it waits for.
#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "cache/lines.h"
#include "cache/purge_log.h"
#include "cache/related.h"
#include "http/reply.h"
#include "proxy/exchange.h"
#include "proxy/session.h"
#include "proxy/wall_clock.h"

namespace clockwise::proxy {

using cache::Fill;
using metrics::at;
using metrics::CacheFetch;
using metrics::CacheResult;

namespace {

// A request that found out so often that it has to look again asks for itself.
constexpr std::uint8_t kMostTries = 4;

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 20> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// What stands in a string of a structured field (RFC 9651 3.3.3).
std::string quoted(std::string_view text) {
  std::string out;
  for (const char octet : text) {
    if (octet < 0x20 || octet > 0x7e) {
      out += '?';
      continue;
    }
    if (octet == '"' || octet == '\\') out += '\\';
    out += octet;
  }
  return out;
}

}  // namespace

// --- what is asked ------------------------------------------------------------------------------

// Whether the cache answers, or sees to it that somebody does; false: a server is to be asked, in
// the ordinary way. REQUIRES: Context::request is this request's head.
bool Exchange::ask_cache() {
  asked_cache_ = true;
  const http::RequestHead& head = context_.request;
  wish_ = cache::wish_of(session_->client().in().view(), head.fields);
  forwarded_ = Forwarded::method;
  if (!http::is_read(method_)) {
    target_key_ = key_of(view_->cache.cache->key);
    target_authority_ = head.authority;
    target_uri_ = head.uri;
    return false;
  }
  forwarded_ = Forwarded::request;
  // Nobody could tell an answer to content from one without (RFC 9110 9.3.1).
  if (!request_body_.done() || head.body.kind != http::BodyKind::none || wish_.for_origin)
    return false;
  return look_up();
}

cache::Asked Exchange::asked() const {
  cache::Asked asked;
  asked.authorization = wish_.authorization;
  if (wish_.control)
    asked.control = cache::parse_cache_control(
        cache::lines_of(session_->client().in().view(), context_.request.fields, "cache-control"));
  return asked;
}

bool Exchange::look_up() {
  const upstream::Cache& cache = *view_->cache.cache;
  static const cache::Asked kPlain;
  const cache::Asked& asks =
      wish_.control || wish_.authorization ? context_.asked = asked() : kPlain;
  const std::string_view key = key_of(cache.key);
  const cache::Wanted wanted{
      .hash = cache.store->hash(key),
      .key = key,
      .octets = session_->client().in().view(),
      .fields = context_.request.fields,
      .may_fetch =
          method_ == http::Method::get && !asks.control.no_store && !asks.control.only_if_cached,
  };
  auto found = cache.store->find(wanted, now_ms());
  // In front of memcached its servers have been asked, and what they no longer have is not given.
  if (!fetches_item() && found.object &&
      (!wish_.authorization || found.object->terms().for_authorized)) {
    const cache::Terms& terms = found.object->terms();
    const auto use = found.object->made_stale()
                         ? cache::Use::validate
                         : cache::use_of(terms, asks, now_ms(), cache.policy);
    if (use != cache::Use::validate) {
      const bool fresh = use == cache::Use::fresh;
      found.object->touch();
      if (!fresh)
        fetch_beside(wanted, found.object, CacheFetch::background);
      else if (wants_refresh(*found.object))
        fetch_beside(wanted, found.object, CacheFetch::prefetch);
      const std::uint64_t size = found.object->size();
      forwarded_ = fresh ? Forwarded::no : Forwarded::stale;
      answer_from(std::move(found.object), size, fresh ? CacheResult::hit : CacheResult::stale);
      return true;
    }
  }
  forwarded_ = !found.object ? (found.other ? Forwarded::vary_miss : Forwarded::uri_miss)
               : is_asked_anew(*found.object) ? Forwarded::request
                                              : Forwarded::stale;
  result_ = CacheResult::miss;
  if (asks.control.only_if_cached) {
    reply(504, {}, "nothing is stored that answers the request");
    return true;
  }
  if (asks.control.no_store) {
    forwarded_ = Forwarded::request;
    result_ = CacheResult::bypass;
    return false;
  }
  // The answer to a HEAD says nothing that could answer a GET.
  if (method_ == http::Method::head && !found.object) return false;
  if (found.pass && !found.probe) {
    forwarded_ = Forwarded::bypass;
    result_ = CacheResult::bypass;
    return false;
  }
  return join_fetch(wanted, found);
}

// It would do, but the client wants a fresher one.
bool Exchange::is_asked_anew(const cache::Object& object) const {
  const cache::Terms& terms = object.terms();
  return !object.made_stale() && !terms.validate_always &&
         cache::current_age(terms, now_ms()) < terms.lifetime;
}

// Waits for the fetch of another request, or begins one.
bool Exchange::join_fetch(const cache::Wanted& wanted, const cache::Store::Found& found) {
  const upstream::Cache& cache = *view_->cache.cache;
  const bool alone = wish_.authorization || !cache.config.coalesce || found.probe;
  auto joined = cache.store->join(wanted, found.object, alone, now_ms());
  if (joined.object && !(joined.object == found.object)) return try_again() && look_up();
  if (!joined.fill) return false;
  FillWatch::Owner& owner = *this;
  watch_ = std::make_shared<FillWatch>(context_.loop, owner, cache.store, std::move(joined.fill));
  if (!watch_->follow(joined.leads ? SIZE_MAX : std::size_t{1} + cache.config.coalesce_waiters)) {
    watch_.reset();
    return false;
  }
  // What was found may be purged by now: then it neither stands in nor is it validated.
  stored_.object = std::move(joined.object);
  phase_ = Phase::waiting;
  reader_of_fetch_ = joined.leads;
  if (joined.leads) {
    const bool conditional = stored_.object && stored_.object->terms().has_validator;
    begin_fetch(watch_->shared(), stored_.object,
                conditional ? CacheFetch::revalidate : CacheFetch::miss, true);
  } else {
    view_->cache_cells->waiting.add();
  }
  await_fill();
  return true;
}

bool Exchange::try_again() { return ++cache_tries_ < kMostTries; }

// The scratch of this event belongs to the fetch after this. REQUIRES: look_up() has read what the
// request asks.
void Exchange::begin_fetch(const std::shared_ptr<Fill>& fill, const cache::ObjectRef& stale,
                           CacheFetch reason, bool reads) {
  // Where another proxy may have one that is newer, that is seen first.
  const bool conditional = stale && stale->terms().has_validator && view_->shared == nullptr;
  const cache::Object* validates = conditional ? &*stale : nullptr;
  const std::string request =
      fetch_request(session_->client().in().view(), context_.request, validates);
  Fetch fetch;
  fetch.view = fetches_item() ? view_->fallback : view_;
  if (fetches_item()) {
    fetch.items = view_;
    ++view_->users;
    fetch.item_key = item_->key;
    if (wants_lease(stale))
      fetch.lease =
          std::make_shared<ItemLease>(context_, *view_, *item_->server, item_->key, item_->late_ns);
  }
  fetch.use = view_->cache;
  fetch.cells = view_->cache_cells;
  fetch.fill = fill;
  if (wish_.control || wish_.authorization) fetch.asked = std::move(context_.asked);
  fetch.stale = stale;
  fetch.reader = reads ? this : nullptr;
  fetch.reason = reason;
  session_->listener().begin_fetch(*session_, request, std::move(fetch));
}

// A fetch that nobody waits for.
void Exchange::fetch_beside(const cache::Wanted& wanted, const cache::ObjectRef& object,
                            CacheFetch reason) {
  auto joined = view_->cache.cache->store->join(wanted, object, false, now_ms());
  if (!joined.leads) return;
  begin_fetch(joined.fill, joined.object, reason, false);
  rescan_head();
}

bool Exchange::wants_refresh(const cache::Object& object) const {
  const auto& ahead = view_->cache.cache->config.refresh_ahead;
  if (!ahead) return false;
  const cache::Terms& terms = object.terms();
  const auto left = terms.lifetime - cache::current_age(terms, now_ms());
  return static_cast<double>(left) < *ahead * terms.lifetime && object.claim_refresh();
}

// --- waiting ------------------------------------------------------------------------------------

void Exchange::await_fill() {
  if (!watch_->wait(Fill::State::waiting, 0)) return fill_changed();
  const config::Cache& settings = view_->cache.cache->config;
  awaited_ = Side::server;
  // Whose fetch it is waits as long as that tries.
  due_ = leads_ != nullptr
             ? io::Deadlines::kNever
             : now() + static_cast<io::Milliseconds>(settings.coalesce_timeout.count());
  if (stale_is_usable())
    due_ = std::min(due_, now() + static_cast<io::Milliseconds>(settings.stale_after.count()));
  watch_client();
  update_deadline();
}

void Exchange::on_fill() {
  context_.loop.refresh();
  if (fetch_) return nudged();
  fill_changed();
}

void Exchange::fill_changed() {
  if (phase_ == Phase::stored) {
    context_.pieces.clear();
    return send_stored();
  }
  switch (watch_->fill().state()) {
    case Fill::State::waiting:
      return take_offer() ? answer_stale() : await_fill();
    case Fill::State::streaming:
    case Fill::State::done:
      return fill_begun();
    case Fill::State::passed:
      return fetches_item() && watch_->fill().found() ? read_item_again() : go_on_alone();
    case Fill::State::failed:
      return fill_failed();
    case Fill::State::cut:
      // Nothing of it went out yet.
      leave_fill();
      rescan_head();
      if (!try_again() || !look_up()) go_on_alone();
  }
}

// What another store had that is stale does what it would if it had been here. True: it may be
// given while the origin is asked.
bool Exchange::take_offer() {
  if (stored_.object) return false;
  stored_.object = watch_->fill().stale();
  if (!stored_.object) return false;
  rescan_head();
  const bool fits = cache::matches(cache::unpack(stored_.object->selectors()),
                                   session_->client().in().view(), context_.request.fields);
  if (!fits) {
    stored_.object.reset();
    return false;
  }
  forwarded_ = Forwarded::stale;
  const cache::Terms& terms = stored_.object->terms();
  const bool may =
      cache::use_of(terms, asked(), now_ms(), view_->cache.cache->policy) == cache::Use::stale &&
      (!wish_.authorization || terms.for_authorized);
  if (may && leads_ != nullptr) leads_->fetch_->goes_on = true;
  return may;
}

void Exchange::fill_begun() {
  rescan_head();
  Fill& fill = watch_->fill();
  const bool whole = fill.state() == Fill::State::done;
  cache::ObjectRef object = fill.object();
  const bool fits = cache::matches(cache::unpack(object->selectors()),
                                   session_->client().in().view(), context_.request.fields) &&
                    (!wish_.authorization || object->terms().for_authorized);
  if (!fits) {
    leave_fill();
    if (!try_again() || !look_up()) go_on_alone();
    return;
  }
  found_elsewhere_ = fill.found();
  if (found_elsewhere_) forwarded_ = Forwarded::no;
  const CacheResult result =
      found_elsewhere_   ? CacheResult::hit
      : reader_of_fetch_ ? (fill.revalidated() ? CacheResult::revalidated : CacheResult::miss)
                         : CacheResult::collapsed;
  const std::uint64_t length = fill.length();
  // Its first reader is no sign that others will come.
  if (!reader_of_fetch_) object->touch();
  if (whole) leave_fill();
  answer_from(std::move(object), length, result);
}

void Exchange::fill_failed() {
  (void)take_offer();
  if (stale_is_usable()) return answer_stale();
  const Fill::Failure failure = watch_->fill().failure();
  leave_fill();
  reply(failure.status, failure.proxy_status, failure.text);
}

void Exchange::waited_for_fill() {
  if (stale_is_usable()) {
    if (leads_ != nullptr) leads_->fetch_->goes_on = true;  // what is late is still worth having
    return answer_stale();
  }
  go_on_alone();
}

bool Exchange::stale_is_usable() const {
  if (!stored_.object) return false;
  const cache::Terms& terms = stored_.object->terms();
  return cache::may_stand_in(terms, now_ms()) && (!wish_.authorization || terms.for_authorized);
}

void Exchange::answer_stale() {
  leave_fill();
  rescan_head();
  forwarded_ = Forwarded::stale;
  cache::ObjectRef object = std::move(stored_.object);
  const std::uint64_t size = object->size();
  answer_from(std::move(object), size, CacheResult::stale);
}

// Not with others: a server is asked for this request alone.
void Exchange::go_on_alone() {
  leave_fill();
  stored_.object.reset();
  phase_ = Phase::routing;
  watch_due_ = io::Deadlines::kNever;
  rescan_head();
  if (asked_pool_) leave_pool();
  choose_server();
}

void Exchange::leave_fill() {
  if (leads_ != nullptr) std::exchange(leads_, nullptr)->fetch_->reader = nullptr;
  if (!watch_) return;
  if (!reader_of_fetch_) view_->cache_cells->waiting.sub();
  std::exchange(watch_, nullptr)->leave();
}

// The fetch that was begun for this request has got an answer that cannot be shared: this client
// gets it, from the connection on which it came.
void Exchange::take_answer(Exchange& fetch) {
  leave_fill();
  stored_.object.reset();
  if (view_ != fetch.view_) {
    --view_->users;
    view_ = fetch.view_;
    ++view_->users;
  }
  watch_due_ = io::Deadlines::kNever;
  routed_ = true;
  target_ = fetch.target_;
  target_index_ = fetch.target_index_;
  server_ = std::exchange(fetch.server_, nullptr);
  server_->hand_over(*this);
  hash_ = fetch.hash_;
  home_ = fetch.home_;
  attempts_ = fetch.attempts_;
  dispatched_ns_ = fetch.dispatched_ns_;
  attempt_open_ = std::exchange(fetch.attempt_open_, false);
  trial_ = std::exchange(fetch.trial_, false);
  fetch.request_open_ = false;
  request_written_ = true;
  server_failed_writing_ = fetch.server_failed_writing_;
  passing_refused_ = true;  // the fetch has tried whom there was to try
  response_scanned_ = 0;
  phase_ = Phase::head;
  read_response_head();
}

// --- answering ----------------------------------------------------------------------------------

// `length` of the body, where it is known. REQUIRES: Context::request is this request's head.
void Exchange::answer_from(cache::ObjectRef object, std::uint64_t length, CacheResult result) {
  const http::RequestHead& head = context_.request;
  const bool plain = !wish_.if_none_match && !wish_.if_modified_since && !wish_.range;
  auto served = plain ? cache::Served{.status = object->status(), .parts = {}}
                      : cache::serve(*object, method_, wish_, session_->client().in().view(),
                                     head.fields, length, std::time(nullptr));
  // Several parts are read from the beginning each, where a body that only passes has been left.
  if (watch_ && served.parts.size() > 1) served = {.status = object->status(), .parts = {}};
  result_ = result;
  status_ = served.status;
  phase_ = Phase::stored;
  watch_due_ = io::Deadlines::kNever;
  stored_.object = std::move(object);
  no_body_answer_ =
      method_ == http::Method::head || status_ == 204 || status_ == 304 || status_ == 416;
  http::BodyKind framing = http::BodyKind::length;
  if (length == Fill::kUnknown && !no_body_answer_) {
    framing = minor_version_ == 0 ? http::BodyKind::until_close : http::BodyKind::chunked;
  }
  response_writer_.reset(framing);
  // Who needs less than the whole is done before the fetch is, which is not for this client alone.
  if (leads_ != nullptr && (no_body_answer_ || !served.parts.empty()))
    leads_->fetch_->goes_on = true;
  keep_alive_ = keep_alive_ && session_->may_go_on() && framing != http::BodyKind::until_close;

  stored_.cursor = cache::Cursor(*stored_.object, 0);
  stored_.skip = 0;
  stored_.end = no_body_answer_ ? 0 : length;
  if (served.parts.size() == 1 && !no_body_answer_) begin_part(served.parts.front());
  if (served.parts.size() > 1) {
    stored_.parts = served.parts;
    stored_.boundary = context_.request_ids.next();
    stored_.end = 0;
  }
  write_stored_head(served, length);
  count_cached();
  answer_started_ = true;
  if (to_client_.empty()) return send_stored();
  // A 1xx has not gone out yet.
  stored_written(to_client_.send(session_->client(), context_.pieces));
}

// The head into Context::pieces.
void Exchange::write_stored_head(const cache::Served& served, std::uint64_t length) {
  const cache::Object& object = *stored_.object;
  const cache::Seconds age = cache::current_age(object.terms(), now_ms());
  http::Gather& out = context_.gather;
  out.clear();
  if (result_ == CacheResult::hit && !found_elsewhere_ && served.status == 200 && keep_alive_ &&
      minor_version_ > 0 && !view_->cache.cache->config.show_key) {
    out.write("HTTP/1.1 200 OK\r\nContent-Length: ", length, "\r\nAge: ", age, "\r\n");
    out.relay(object.head());
    out.write("Via: 1.1 clockwise\r\nCache-Status: clockwise; hit; ttl=",
              object.terms().lifetime - age, "\r\n\r\n");
    return context_.pieces.begin_with(out.slices());
  }
  out.write("HTTP/1.1 ", served.status, " ", http::reason_phrase(served.status), "\r\n");
  write_stored_framing(served, length);
  std::string& text = context_.text;
  text.clear();
  if (served.status == 304 || served.status == 416 || served.parts.size() > 1) {
    cache::append_head(object.head(), false, text);
    out.write(text);
  } else {
    out.relay(object.head());
  }
  // What came from the origin for this request has the Age that it came with.
  if (result_ == CacheResult::miss)
    out.write(for_reader_only_);
  else
    out.write("Age: ", age, "\r\n");
  text.clear();
  (void)add_cache_status(text);
  out.write("Via: 1.1 clockwise\r\n", text);
  if (!keep_alive_)
    out.write("Connection: close\r\n\r\n");
  else if (minor_version_ == 0)
    out.write("Connection: keep-alive\r\n\r\n");
  else
    out.write("\r\n");
  context_.pieces.begin_with(out.slices());
}

void Exchange::write_stored_framing(const cache::Served& served, std::uint64_t length) {
  http::Gather& out = context_.gather;
  if (served.parts.size() > 1) {
    out.write("Content-Type: multipart/byteranges; boundary=", stored_.boundary,
              "\r\nContent-Length: ", multipart_length(), "\r\n");
  } else if (served.parts.size() == 1) {
    const cache::ByteRange& part = served.parts.front();
    out.write("Content-Range: bytes ", part.first, "-", part.last, "/", length,
              "\r\nContent-Length: ", part.size(), "\r\n");
  } else if (served.status == 416) {
    out.write("Content-Range: bytes */", length, "\r\nContent-Length: 0\r\n");
  } else if (response_writer_.kind() == http::BodyKind::chunked) {
    out.write("Transfer-Encoding: chunked\r\n");
  } else if (response_writer_.kind() == http::BodyKind::length && length != Fill::kUnknown &&
             served.status != 204 && served.status != 304) {
    out.write("Content-Length: ", length, "\r\n");
  }
}

void Exchange::begin_part(const cache::ByteRange& part) {
  stored_.cursor = cache::Cursor(*stored_.object, 0);
  stored_.skip = part.first;
  stored_.end = part.last + 1;
}

// The text before each part of multipart/byteranges (RFC 9110 14.6).
void Exchange::part_head(const cache::ByteRange& part, std::string& out) const {
  out.append("\r\n--").append(stored_.boundary).append("\r\n");
  if (const auto type = stored_.object->field("content-type"); !type.empty())
    out.append("Content-Type: ").append(type).append("\r\n");
  out.append("Content-Range: bytes ");
  append_number(out, static_cast<std::int64_t>(part.first));
  out.append("-");
  append_number(out, static_cast<std::int64_t>(part.last));
  out.append("/");
  append_number(out, static_cast<std::int64_t>(stored_.object->size()));
  out.append("\r\n\r\n");
}

std::uint64_t Exchange::multipart_length() const {
  std::uint64_t length =
      stored_.boundary.size() + 8;  // the end: CRLF, two dashes on each side, CRLF
  std::string head;
  for (const cache::ByteRange& part : stored_.parts) {
    head.clear();
    part_head(part, head);
    length += head.size() + part.size();
  }
  return length;
}

// False: that was the last one. REQUIRES: there are parts.
bool Exchange::next_part() {
  if (no_body_answer_ || stored_.next_part > stored_.parts.size()) return false;
  context_.text.clear();
  if (stored_.next_part == stored_.parts.size()) {
    context_.text.append("\r\n--").append(stored_.boundary).append("--\r\n");
  } else {
    part_head(stored_.parts[stored_.next_part], context_.text);
    begin_part(stored_.parts[stored_.next_part]);
  }
  ++stored_.next_part;
  return true;
}

// Sends what is there, behind what Context::pieces hold already.
void Exchange::send_stored() {
  if (response_writer_.kind() != http::BodyKind::length) return send_stored_chunks();
  Pieces& pieces = context_.pieces;
  while (true) {
    const std::uint64_t size = stored_.object->size();
    if (stored_.skip > 0) {
      const std::uint64_t n = std::min(stored_.skip, size - stored_.cursor.offset());
      stored_.cursor.advance(n);
      stored_.skip -= n;
    }
    const std::uint64_t there = stored_.skip > 0 ? 0 : std::min(stored_.end, size);
    cache::Cursor ahead = stored_.cursor;
    while (ahead.offset() < there && !pieces.full()) {
      const std::string_view run = ahead.run(there);
      pieces.staying(run);
      ahead.advance(run.size());
    }
    if (ahead.offset() >= stored_.end && stored_.skip == 0 &&
        (stored_.parts.empty() || no_body_answer_))
      count_request(metrics::code_of(status_));
    if (pieces.size() > 0) {
      std::size_t staid = 0;
      const auto result = to_client_.send_some(session_->client(), pieces, staid);
      pieces.clear();
      stored_.cursor.advance(staid);
      count_sent(staid);
      if (result != Outbox::Result::sent) return stored_written(result);
    }
    if (stored_.cursor.offset() < stored_.end) {
      if (stored_.cursor.offset() < there) continue;
      if (!more_is_there()) return;
      continue;
    }
    if (stored_.parts.empty() || !next_part()) return stored_done();
    pieces.passing(context_.text);
  }
}

// False: the rest is still to come, or the exchange is over.
bool Exchange::more_is_there() {
  if (watch_->wait(Fill::State::streaming, stored_.cursor.offset())) {
    due_ = io::Deadlines::kNever;
    if (!session_->client().reading()) watch_client();
    update_deadline();
    return false;
  }
  if (watch_->fill().state() != Fill::State::cut) return true;
  cut("the fetch of the answer broke off");
  return false;
}

// A body whose length is not known: as it comes, one piece at a time.
void Exchange::send_stored_chunks() {
  Pieces& pieces = context_.pieces;
  while (to_client_.empty()) {
    // In this order: what is done has all its octets.
    const bool whole = !watch_ || watch_->fill().state() == Fill::State::done;
    const std::uint64_t size = stored_.object->size();
    const std::string_view run = stored_.cursor.run(size);
    const bool last = whole && stored_.cursor.offset() + run.size() == size;
    if (run.empty() && stored_.ended) return stored_done();
    if (!run.empty() || last || pieces.size() > 0) {
      pieces.passing(response_writer_.before(run.size()));
      pieces.staying(run);
      pieces.staying(response_writer_.after(run.size(), last));
      stored_.cursor.advance(run.size());
      stored_.ended = last;
      if (last) count_request(metrics::code_of(status_));
      const auto result = to_client_.send(session_->client(), pieces);
      pieces.clear();
      count_sent(run.size());
      if (result != Outbox::Result::sent) return stored_written(result);
      continue;
    }
    if (!more_is_there()) return;
  }
}

void Exchange::count_sent(std::uint64_t of_body) {
  count_octets();
  const bool from_origin = result_ == CacheResult::miss;
  (from_origin ? view_->cache_cells->sent_from_origin : view_->cache_cells->sent_from_store)
      .add(of_body);
}

void Exchange::stored_written(Outbox::Result result) {
  count_sent(0);
  switch (result) {
    case Outbox::Result::failed:
      return client_left();
    case Outbox::Result::blocked:
      session_->client().wait_writable();
      return answer_awaits(Side::client);
    case Outbox::Result::sent:
      break;
  }
  context_.pieces.clear();
  send_stored();
}

void Exchange::stored_done() {
  count_request(metrics::code_of(status_));
  finish();
}

// --- telling ------------------------------------------------------------------------------------

// RFC 9211. False: this exchange has nothing to do with a cache.
bool Exchange::add_cache_status(std::string& lines) const {
  if (asked_pool_ && !asked_cache_) {
    lines.append("Cache-Status: clockwise; fwd=uri-miss");
    if (phase_ != Phase::replying) lines.append("; fwd-status=").append(std::to_string(status_));
    lines.append("\r\n");
    return true;
  }
  if (!asked_cache_) return false;
  lines.append("Cache-Status: ").append(http::kPseudonym);
  switch (forwarded_) {
    case Forwarded::no:
      lines.append("; hit");
      break;
    case Forwarded::uri_miss:
      lines.append("; fwd=uri-miss");
      break;
    case Forwarded::vary_miss:
      lines.append("; fwd=vary-miss");
      break;
    case Forwarded::stale:
      lines.append("; fwd=stale");
      break;
    case Forwarded::request:
      lines.append("; fwd=request");
      break;
    case Forwarded::method:
      lines.append("; fwd=method");
      break;
    case Forwarded::bypass:
      lines.append("; fwd=bypass; detail=hit-for-miss");
      break;
  }
  if (phase_ == Phase::stored) {
    const cache::Object& object = *stored_.object;
    const cache::Terms& terms = object.terms();
    if (result_ == CacheResult::revalidated) lines.append("; fwd-status=304");
    if (result_ == CacheResult::miss) {
      lines.append("; fwd-status=");
      append_number(lines, object.status());
    }
    if (result_ == CacheResult::miss || result_ == CacheResult::revalidated)
      lines.append("; stored");
    if (result_ == CacheResult::collapsed) lines.append("; collapsed");
    lines.append("; ttl=");
    append_number(lines, terms.lifetime - cache::current_age(terms, now_ms()));
    if (found_elsewhere_) lines.append("; detail=shared");
  } else if (phase_ != Phase::replying && forwarded_ != Forwarded::no) {
    lines.append("; fwd-status=");
    append_number(lines, status_);
  }
  if (stored_.object && view_->cache.cache->config.show_key)
    lines.append("; key=\"").append(quoted(stored_.object->key())).append("\"");
  lines.append("\r\n");
  return true;
}

void Exchange::count_cached() {
  // A further try went by a snapshot in which nothing is kept any more.
  if (view_->cache_cells != nullptr) at(view_->cache_cells->requests, result_).add();
}

// An unsafe request that succeeded makes doubtful what is stored of its URI, and of those that its
// answer names. REQUIRES: Context::response is the answer's head.
void Exchange::see_invalidation() {
  if (!view_->cache.cache || !cache::invalidates(method_, status_)) return;
  const upstream::Cache& cache = *view_->cache.cache;
  invalidate(target_key_);
  const http::ResponseHead& head = context_.response;
  const std::string_view octets = server_->stream().in().view();
  for (const std::string_view name : {"location", "content-location"}) {
    for (const std::string_view value : cache::lines_of(octets, head.fields, name)) {
      const auto uri = cache::same_origin_uri(value, target_authority_, target_uri_);
      if (!uri) continue;
      invalidate(cache.key.render(
          {.uri = *uri, .host = target_authority_, .scheme = "http", .method = "GET"},
          context_.key));
    }
  }
}

void Exchange::invalidate(std::string_view key) {
  const upstream::Cache& cache = *view_->cache.cache;
  if (cache.purges) cache.purges->invalidate(key, wall_ms());
  cache.store->invalidate(key);
  if (view_->shared != nullptr)
    view_->shared->remove(view_->shared->item_key(key), cache::EvictionReason::invalidated);
}

void Exchange::leave_cache() {
  leave_fill();
  if (fetch_) {
    fetch_->watch->leave();
    if (fetch_->reader != nullptr) fetch_->reader->leads_ = nullptr;
    fetch_->lease.reset();  // it uses the view
    if (fetch_->items != nullptr) --fetch_->items->users;
    fetch_.reset();
  }
  if (!asked_cache_) return;
  stored_.object.reset();
  stored_.parts.clear();
  stored_.next_part = 0;
  stored_.skip = stored_.end = 0;
  stored_.ended = false;
  for_reader_only_.clear();
  forwarded_ = Forwarded::no;
  result_ = CacheResult::bypass;
  cache_tries_ = 0;
  asked_cache_ = reader_of_fetch_ = found_elsewhere_ = false;
}

}  // namespace clockwise::proxy
