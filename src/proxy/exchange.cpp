#include "proxy/exchange.h"

#include <algorithm>
#include <boost/asio/error.hpp>

#include "http/octets.h"
#include "http/reply.h"
#include "proxy/session.h"

namespace clockwise::proxy {

using metrics::at;
using metrics::Code;
using metrics::RequestError;

namespace {

// A client that waits longer than this is looked at: one that left ends the work for it.
constexpr io::Milliseconds kWatchClientAfter = 100;

// A request that came through a proxy of our name more often goes in a circle.
constexpr std::size_t kMostPasses = 10;

// What the access log has of a request that was refused.
constexpr std::size_t kMostOfRefused = 1024;

// How soon a client may try again after a 503.
constexpr std::uint32_t kRetryAfterSeconds = 1;

io::Milliseconds ms(std::chrono::milliseconds duration) noexcept {
  return static_cast<io::Milliseconds>(duration.count());
}

RequestError error_of(http::HeadError error) noexcept {
  switch (error) {
    case http::HeadError::framing:
      return RequestError::framing;
    case http::HeadError::header_too_large:
      return RequestError::header_too_large;
    case http::HeadError::uri_too_long:
      return RequestError::uri_too_long;
    case http::HeadError::method:
      return RequestError::method;
    case http::HeadError::malformed:
      break;
  }
  return RequestError::malformed;
}

// RFC 9209 2.3 for what is the client's fault.
std::string_view error_token(unsigned status, std::string_view proxy_status) noexcept {
  if (!proxy_status.empty() || status < 400) return proxy_status;
  return status == 405 ? "http_request_denied" : "http_request_error";
}

}  // namespace

void Exchange::begin(Session& session) {
  session_ = &session;
  phase_ = Phase::routing;
  started_ns_ = session.head_started_ns();
  session.listener().cells().in_flight.add();
  request_open_ = true;
}

void Exchange::start(Session& session) {
  begin(session);
  const http::RequestHead& head = context_.request;
  method_ = head.method_id;
  minor_version_ = head.minor_version;
  keep_alive_ = head.keep_alive && session.may_go_on();
  accepts_json_ = head.accepts_json;
  head_size_ = request_octets_ = head.size;
  request_body_.reset(head.body);
  remember_for_log();
  if (context_.admission->short_of_memory.load(std::memory_order_relaxed)) [[unlikely]]
    return turn_away();

  const config::ListenerTimeouts& timeouts = session.listener().config().timeouts;
  if (timeouts.request.count() != 0 && !request_body_.done())
    request_due_ = started_ns_ / 1'000'000 + ms(timeouts.request);
  const std::uint64_t limit = session.listener().config().limits.body_size;
  if (limit != 0 && head.body.kind == http::BodyKind::length && head.body.length > limit) {
    at(session.listener().cells().request_errors, RequestError::body_too_large).add();
    return reply(413, {}, "the request body is larger than the limit");
  }
  if (method_ == http::Method::options && head.max_forwards == 0) return reply(200, {}, {});
  if (http::times_passed(session.client().in().view(), head) > kMostPasses) {
    return reply(508, "proxy_loop_detected", "the request came through this proxy before");
  }

  view_ = session.listener().pool_for(head);
  ++view_->users;
  if (view_->pool->config.protocol == config::Protocol::memcached) return ask_item();
  if (view_->cache.cache && ask_cache()) return;
  choose_server();
}

// REQUIRES: Context::request is this request's head.
void Exchange::choose_server() {
  const upstream::Pool& pool = *view_->pool;
  routed_ = true;
  retries_left_ = pool.config.retry.attempts;
  last_failure_ = Failure::no_server;
  view_->memory->retries.deposit(pool.config.retry.budget);
  if (pool.config.hedge) view_->memory->hedges.deposit(pool.config.hedge->budget);
  restart_total();
  hash_ = position(*pool.ring, pool.key);
  if (pool.ring->empty()) return give_up(Failure::no_server);
  home_ = pool.ring->owner(hash_);
  if (pool.watch) count_remapped(hash_);
  target_index_ = home_;
  if (!pool.health->all_well()) return route();
  lease(false);
}

// Where a ring has the request whose key is made so.
std::uint64_t Exchange::position(const ring::Ring& ring, const http::KeyTemplate& key) {
  return ring.hash(key.is_uri() ? context_.request.uri : key_of(key));
}

// What the request is hashed by, in the worker's scratch or in the head.
std::string_view Exchange::key_of(const http::KeyTemplate& key) {
  const http::RequestHead& head = context_.request;
  return key.render({.uri = head.uri,
                     .host = head.authority,
                     .scheme = "http",
                     .method = head.method,
                     .client_ip = session_->client_ip(),
                     .octets = session_->client().in().view(),
                     .fields = head.fields},
                    context_.key);
}

// Memory has run short. What was admitted goes on, so this connection ends too.
void Exchange::turn_away() {
  at(session_->listener().cells().rejected, metrics::Rejected::memory).add();
  keep_alive_ = false;
  reply(503, "proxy_internal_response", "the proxy is short of memory");
}

void Exchange::refuse(Session& session) {
  begin(session);
  const http::RequestHead& head = context_.request;
  const http::Refusal& refusal = head.refusal;
  method_ = head.method_id;
  minor_version_ = head.minor_version;
  accepts_json_ = head.accepts_json;
  keep_alive_ = false;
  remember_refused_for_log();
  at(session.listener().cells().request_errors, error_of(refusal.reason)).add();
  reply(refusal.status, {}, refusal.text);
}

void Exchange::time_out_head(Session& session) {
  begin(session);
  keep_alive_ = false;
  remember_refused_for_log();
  at(session.listener().cells().request_errors, RequestError::timeout).add();
  reply(408, {}, "the request head did not arrive in time");
}

// The proxy answers by itself. What is left of the request is not read: unless it was complete, the
// connection ends after the answer.
void Exchange::reply(unsigned status, std::string_view proxy_status, std::string_view text) {
  if (fetch_) return fetch_failed(status, proxy_status, text);
  phase_ = Phase::replying;
  end_hedge(metrics::Hedged::cancelled);
  status_ = static_cast<std::uint16_t>(status);
  reason_ = proxy_status.empty() ? text : proxy_status;
  keep_alive_ = keep_alive_ && request_body_.done() && session_->may_go_on();
  http::Reply answer;
  answer.status = status_;
  answer.proxy_error = error_token(status, proxy_status);
  answer.text = text;
  answer.retry_after = status == 503 ? kRetryAfterSeconds : 0;
  answer.json = accepts_json_;
  answer.head = method_ == http::Method::head;
  answer.close = !keep_alive_;
  answer.client_minor_version = minor_version_;
  answer.date = context_.date();
  // No server answers, but the key has its place all the same.
  context_.key.clear();
  if (view_ != nullptr && session_->listener().config().debug_headers) add_placement(context_.key);
  if (add_cache_status(context_.key) && asked_cache_) count_cached();
  answer.allow = item_allow_;
  answer.extra = context_.key;
  http::render(answer, context_.text);
  context_.pieces.clear();
  context_.pieces.passing(context_.text);
  context_.loop.refresh();
  count_request(metrics::code_of(status_));
  response_written(to_client_.send(session_->client(), context_.pieces));
}

void Exchange::add_placement(std::string& lines) const {
  lines.append("Clockwise-Key-Hash: ").append(std::to_string(hash_));
  lines.append("\r\nClockwise-Ring: ").append(view_->pool->digest).append("\r\n");
}

// The server's answer is here to its end. It counts before its last octet goes out: whoever has the
// answer finds it counted.
void Exchange::count_answer() {
  if (attempt_open_) attempt_ended({}, server_->reused());
  const Code code = metrics::code_of(status_);
  count_attempt(code);
  count_request(code);
}

// Once a request.
void Exchange::count_request(Code code) {
  if (!std::exchange(request_open_, false)) return;
  if (!fetch_) {
    metrics::ListenerCells& cells = session_->listener().cells();
    cells.in_flight.sub();
    at(cells.requests, code).add();
    if (code != Code::other) cells.duration.observe(context_.loop.now_ns() - started_ns_);
  }
  if (!routed_) return;
  const bool home = !unanswered_ && target_index_ == home_;
  at(view_->cells->routed, home ? metrics::Routed::home : metrics::Routed::failover).add();
  if (target_ != nullptr) view_->recent->add({hash_, now(), from_cache_});
}

void Exchange::count_remapped(std::uint64_t hash) {
  upstream::RemapWatch& watch = *view_->pool->watch;
  if (watch.previous->empty() || now() > view_->watch_until) return;
  if (!watch.same_positions) hash = position(*watch.previous, watch.previous_key);
  const auto before = watch.now[watch.previous->owner(hash)];
  if (before != home_) watch.requests.at(context_.worker).cell.add();
}

// The answer is out: log, and go on to the next request.
void Exchange::finish() {
  Session& session = *session_;
  const bool clean = request_body_.done();
  const bool keep = keep_alive_ && clean;
  log();
  release_request_octets();
  leave_session();
  session.exchange_done(keep, clean);
}

// An answer that was begun cannot be completed; the client must be able to see that.
void Exchange::cut(std::string_view reason) {
  if (fetch_) return fetch_cut();
  Session& session = *session_;
  reason_ = reason;
  drop_server();
  count_request(Code::other);
  log();
  const bool as_error = response_writer_.kind() == http::BodyKind::until_close;
  leave_session();
  session.exchange_cut(as_error);
}

void Exchange::cut_by_server(Failure failure, std::string_view reason) {
  if (attempt_open_) attempt_ended(failure, server_->reused());
  cut(reason);
}

void Exchange::client_left() { cut("client closed the connection"); }

void Exchange::abandon() {
  if (fetch_) fetch_->use.cache->store->cut(*fetch_->fill);
  reason_ = "stopped";
  drop_server();
  count_request(Code::other);
  log();
  leave_session();
}

// Everything back to its first state, memory kept; the exchange returns to the worker's list.
void Exchange::leave_session() {
  release_refused();
  end_hedge(metrics::Hedged::cancelled);
  if (HedgeClock::Place::set()) view_->memory->hedge_clock.clear(*this);
  if (waiter_.waiting()) target_->leave(waiter_);
  leave_trial();
  leave_cache();
  leave_item();
  item_waits_ = false;
  item_allow_ = {};
  if (view_ != nullptr) --view_->users;
  phase_ = Phase::over;
  session_ = nullptr;
  view_ = nullptr;
  target_ = nullptr;
  to_client_.clear();
  to_server_.clear();
  splice_.reset();
  tried_.clear();
  due_ = answer_due_ = watch_due_ = request_due_ = io::Deadlines::kNever;
  request_octets_ = response_octets_ = head_size_ = 0;
  response_scanned_ = 0;
  attempts_ = interims_ = 0;
  status_ = 0;
  from_cache_ = http::CacheAnswer::unknown;
  method_ = http::Method::get;
  minor_version_ = 1;
  keep_alive_ = replayable_ = true;
  accepts_json_ = passing_refused_ = fresh_tried_ = request_written_ = server_failed_writing_ =
      false;
  unanswered_ = answer_started_ = server_keep_alive_ = no_body_answer_ = routed_ = false;
  sent_to_client_ = 0;
  logged_ = has_made_id_ = false;
  log_text_.clear();
  reason_ = {};
  request_body_.reset({});
  response_body_.reset({});
  response_writer_.reset(http::BodyKind::none);
  context_.give_back(*this);
}

// One part of a body in the framing of the other side, behind what the pieces hold already.
void Exchange::add_content(const BodyReader::Part& part, BodyWriter& writer) noexcept {
  const std::size_t size = part.data.size();
  context_.pieces.passing(writer.before(size));
  context_.pieces.staying(part.data);
  context_.pieces.staying(writer.after(size, part.state == BodyReader::State::done));
}

// At any time exactly one side must make the next move, or the exchange would wait for ever.
void Exchange::await(Side side, std::chrono::milliseconds patience) {
  awaited_ = side;
  due_ = now() + ms(patience);
  if (side == Side::server && answer_due_ < due_) due_ = answer_due_;
  update_deadline();
}

void Exchange::update_deadline() {
  session_->set_deadline(std::min({due_, watch_due_, request_due_}));
}

// The time for an answer does not run while the request is still on its way from the client: it
// begins again with each piece of it.
void Exchange::restart_total() noexcept {
  const std::chrono::milliseconds total = view_->pool->config.timeouts.total;
  if (total.count() != 0) answer_due_ = now() + ms(total);
}

void Exchange::on_deadline(io::Milliseconds time) {
  if (request_due_ <= time) {
    request_due_ = io::Deadlines::kNever;
    if (!request_body_.done()) return client_too_slow();
  }
  if (due_ <= time) {
    due_ = io::Deadlines::kNever;
    if (awaited_ == Side::client) return client_moves() ? await_client() : client_too_slow();
    if (phase_ == Phase::queued) return waited_too_long();
    if (phase_ == Phase::waiting) return waited_for_fill();
    if (phase_ == Phase::item) return pool_is_late();
    return answer_due_ <= time ? fail(Failure::total) : server_too_slow();
  }
  if (watch_due_ <= time) {
    watch_due_ = io::Deadlines::kNever;
    io::Buffer& in = session_->client().in();
    if (!in.full()) session_->client().read_soon();
  }
  update_deadline();
}

void Exchange::server_too_slow() {
  if (phase_ == Phase::connecting) return fail(Failure::connect_timeout);
  if (!answer_started_) return fail(Failure::timeout);
  cut_by_server(Failure::timeout, "the server sent nothing for too long");
}

// A full socket counts as writable only once a good part of it is free again, which a slow reader
// may take minutes for. So it is looked at twice within the time it has, and stays while it takes
// something.
void Exchange::await_client() {
  await(Side::client, session_->listener().config().timeouts.write / 2);
}

bool Exchange::client_moves() noexcept {
  if (!answer_started_ && phase_ != Phase::replying) return false;
  const std::size_t before = std::exchange(unsent_, session_->client().unsent());
  return unsent_ < before;
}

void Exchange::client_too_slow() {
  if (answer_started_ || phase_ == Phase::replying) return cut("the client made no progress");
  at(session_->listener().cells().request_errors, RequestError::timeout).add();
  if (waiter_.waiting()) target_->leave(waiter_);
  drop_server();
  to_server_.clear();
  reply(408, {}, "the request body did not arrive in time");
}

void Exchange::watch_client() {
  if (!fetch_) watch_due_ = now() + kWatchClientAfter;
}

void Exchange::on_client_read(const io::error_code& error, std::size_t) {
  context_.loop.refresh();
  if (error && error != boost::asio::error::eof) return client_left();
  if (phase_ == Phase::queued) return on_client_read_in_queue(error);
  // What comes before its turn stays in the buffer; an end is found again by the next read. A
  // client that half-closed after a whole request still gets its answer.
  if (phase_ == Phase::waiting) return on_client_read_in_queue(error);
  if (phase_ == Phase::item) return;
  const bool body_is_due = !request_body_.done() && phase_ != Phase::connecting &&
                           phase_ != Phase::replying && to_server_.empty();
  if (!body_is_due) return;
  if (error) return request_body_bad("the request body ended before its time");
  if (phase_ == Phase::upload) return read_upload();
  relay_request_body();
}

// Nothing was done for it yet: where requests queue up, one whose client has ended its side is not
// worth a connection. What else comes stays in the buffer.
void Exchange::on_client_read_in_queue(const io::error_code& error) {
  if (error) return client_left();
  if (!session_->client().in().full()) session_->client().read_soon();
}

void Exchange::on_client_readable(const io::error_code& error) {
  context_.loop.refresh();
  if (error) return client_left();
  if (splice_) run_splice();
}

void Exchange::on_client_writable(const io::error_code& error) {
  context_.loop.refresh();
  if (error) return client_left();
  if (splice_ && splice_->towards_client()) return run_splice();
  if (phase_ == Phase::stored) return stored_written(to_client_.flush(session_->client()));
  if (phase_ == Phase::item) return item_writable();
  response_written(to_client_.flush(session_->client()));
}

void Exchange::remember_for_log() {
  logged_ = context_.log != nullptr && context_.log->sampled(context_.worker);
  if (!logged_) return;
  const http::RequestHead& head = context_.request;
  const std::string_view octets = session_->client().in().view();
  const auto field = [&](std::string_view name) -> std::string_view {
    for (const auto& line : head.fields) {
      if (http::same_ignoring_case(http::name_of(octets, line), name)) {
        return http::value_of(octets, line);
      }
    }
    return {};
  };
  keep_for_log({head.method, head.target, head.authority, field("referer"), field("user-agent"),
                http::request_id_of(octets, head)});
}

// There may be no more of it than a piece of its first line, and that need not be HTTP.
void Exchange::remember_refused_for_log() {
  logged_ = context_.log != nullptr && context_.log->sampled(context_.worker);
  if (!logged_) return;
  const std::string_view octets = session_->client().in().view().substr(0, kMostOfRefused);
  const std::string_view line = octets.substr(0, octets.find_first_of("\r\n"));
  const std::size_t method_end = std::min(line.find(' '), line.size());
  const std::string_view rest = line.substr(std::min(method_end + 1, line.size()));
  keep_for_log({line.substr(0, method_end), rest.substr(0, rest.find(' ')), {}, {}, {}, {}});
}

void Exchange::keep_for_log(const std::array<std::string_view, kLogParts>& parts) {
  for (std::size_t i = 0; i < kLogParts; ++i) {
    log_text_.append(parts[i]);
    log_ends_[i] = static_cast<std::uint32_t>(log_text_.size());
  }
}

// The same for each server that is asked.
std::string_view Exchange::own_id() noexcept {
  if (!std::exchange(has_made_id_, true))
    std::ranges::copy(context_.request_ids.next(), made_id_.begin());
  return {made_id_.data(), made_id_.size()};
}

void Exchange::log() {
  if (!logged_ || context_.log == nullptr) return;  // a reload may have switched it off
  const auto part = [&](std::size_t i) {
    const std::uint32_t begin = i == 0 ? 0 : log_ends_[i - 1];
    return std::string_view(log_text_).substr(begin, log_ends_[i] - begin);
  };
  AccessRecord record;
  record.time = std::chrono::system_clock::now();
  record.client_ip = session_->client_ip();
  record.method = part(0);
  record.target = part(1);
  record.host = part(2);
  record.referer = part(3);
  record.user_agent = part(4);
  record.request_id = part(5);
  if (record.request_id.empty() && has_made_id_) record.request_id = own_id();
  record.minor_version = minor_version_;
  record.status = status_;
  record.request_bytes = request_body_.octets();
  record.response_bytes = sent_to_client_;
  record.duration = std::chrono::nanoseconds(context_.loop.now_ns() - started_ns_);
  record.listener = session_->listener().config().name;
  if (view_ != nullptr) record.pool = view_->pool->config.name;
  if (target_ != nullptr && reason_.empty()) record.server = target_->name();
  record.attempts = attempts_;
  record.reason = reason_;
  context_.log->append(context_.worker, record);
}

}  // namespace clockwise::proxy
