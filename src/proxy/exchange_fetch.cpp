// The exchange that fetches for the store: no client reads its answer, the store takes it.
#include <utility>

#include "cache/lines.h"
#include "cache/vary.h"
#include "proxy/exchange.h"
#include "proxy/session.h"
#include "proxy/wall_clock.h"

namespace clockwise::proxy {

using cache::Fill;
using metrics::at;
using metrics::Revalidation;

namespace {

// RFC 5861 4: as if the origin could not be reached.
bool is_failure(unsigned status) noexcept {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

// The tags of an answer, separated by blanks; empty: it has none.
std::string tags_of(std::string_view octets, std::span<const http::FieldLine> fields) {
  std::string tags;
  for (const std::string_view name : {"cache-tag", "surrogate-key"})
    for (const std::string_view line : cache::lines_of(octets, fields, name)) {
      if (!tags.empty()) tags += ' ';
      for (const char octet : line) tags += octet == ',' || octet == '\t' ? ' ' : octet;
    }
  return tags;
}

}  // namespace

void Exchange::take_on(Session& session, Fetch fetch) {
  session_ = &session;
  fetch_ = std::make_unique<Fetch>(std::move(fetch));
  FillWatch::Owner& owner = *this;
  fetch_->watch =
      std::make_shared<FillWatch>(context_.loop, owner, fetch_->use.cache->store, fetch_->fill);
  view_ = fetch_->view;
  ++view_->users;
}

void Exchange::fetch(Session& session, Fetch fetch) {
  take_on(session, std::move(fetch));
  fetch_->watch->fetch();
  if (fetch_->reader != nullptr) fetch_->reader->leads_ = this;
  started_ns_ = session.head_started_ns();
  request_open_ = true;
  head_size_ = request_octets_ = context_.request.size;
  ask_shared();
}

void Exchange::refuse_fetch(Session& session, Fetch fetch) {
  take_on(session, std::move(fetch));
  fetch_failed(400, {}, "the request cannot be made to a server");
}

void Exchange::begin_fill() {
  answer_came();
  answer_counts();
  if (!keep_answer()) return;
  answer_started_ = true;
  phase_ = Phase::body;
  fill(context_.response.size);
}

// False: the answer is not kept, and the fetch is over.
bool Exchange::keep_answer() {
  const upstream::Cache& cache = *fetch_->use.cache;
  const http::ResponseHead& head = context_.response;
  const std::string_view octets = server_->stream().in().view().substr(0, head.size);
  const cache::Moments moments{.requested_ms = fetch_->requested_ms, .received_ms = wall_ms()};
  if (fetch_->validates() && head.status == 304) {
    confirm_stored(moments);
    return false;
  }
  if (fetch_->validates())
    at(fetch_->cells->revalidations,
       is_failure(head.status) ? Revalidation::failed : Revalidation::replaced)
        .add();
  if (fetch_->stale && is_failure(head.status) &&
      cache::may_stand_in(fetch_->stale->terms(), now_ms())) {
    count_answer();
    skip_answer();
    fetch_failed(502, "http_response_incomplete", "the server failed");
    return false;
  }
  const cache::Answer answer = cache::answer_of(octets, head, cache.targeted, moments);
  cache::Verdict verdict = cache::judge(fetch_->asked, answer, moments, cache.policy);
  const bool declared = head.body.kind == http::BodyKind::length;
  const std::uint64_t most = std::min(cache.config.max_object, cache.store->largest());
  const bool too_large = declared && head.body.length > most;
  if (verdict.refused || too_large) {
    not_shared(!is_failure(head.status), too_large);
    return false;
  }
  rescan_head();
  if (cache.config.surrogate_control) verdict.dropped_fields.emplace_back(kSurrogateControl);
  verdict.terms.received_ms = now_ms();
  shorten(verdict.terms);
  const auto selectors = cache::selectors(cache::lines_of(octets, head.fields, "vary"),
                                          session_->client().in().view(), context_.request.fields);
  const std::string stored = stored_head(octets, head, verdict.dropped_fields, context_.date());
  const std::string tags = tags_of(octets, head.fields);
  const cache::Draft draft{
      .status = head.status,
      .head = stored,
      .tags = tags,
      .selectors = selectors,
      .terms = verdict.terms,
      .length = declared                                 ? head.body.length
                : head.body.kind == http::BodyKind::none ? 0
                                                         : Fill::kUnknown,
  };
  if (fetch_->reader != nullptr)
    fetch_->reader->for_reader_only_ = lines_for_reader(octets, head, verdict.dropped_fields);
  if (cache.store->begin(*fetch_->fill, draft, now_ms())) return true;
  not_shared(false, false);
  return false;
}

// What was stored together is not to go stale together.
void Exchange::shorten(cache::Terms& terms) {
  const double jitter = fetch_->use.cache->config.ttl_jitter;
  if (jitter <= 0) return;
  const double part = static_cast<double>(context_.random() >> 11U) * 0x1.0p-53;
  terms.lifetime -= static_cast<std::uint32_t>(terms.lifetime * jitter * part);
}

// The origin says that what is stored is still right (RFC 9111 4.3.4).
void Exchange::confirm_stored(const cache::Moments& moments) {
  const upstream::Cache& cache = *fetch_->use.cache;
  const http::ResponseHead& head = context_.response;
  io::Buffer& in = server_->stream().in();
  const std::uint32_t head_size = head.size;
  const std::string_view octets = in.view().substr(0, head_size);
  const cache::Object& old = *fetch_->stale;
  at(fetch_->cells->revalidations, Revalidation::not_modified).add();

  // Judged as if it had come whole with the lines that it has now.
  std::string lines = confirmed_head(old, octets, head, {});
  std::string whole = "HTTP/1.1 " + std::to_string(old.status()) + " OK\r\n" + lines;
  for (const std::string_view age : cache::lines_of(octets, head.fields, "age"))
    whole.append("Age: ").append(age).append("\r\n");
  whole += "\r\n";
  http::ResponseHead merged;
  std::size_t scanned = 0;
  constexpr http::HeadLimits kNone{.size = UINT32_MAX, .fields = UINT32_MAX};
  cache::Verdict verdict;
  if (http::scan_response(whole, kNone, http::Method::head, merged, scanned) ==
      http::Progress::complete) {
    verdict = cache::judge(fetch_->asked, cache::answer_of(whole, merged, cache.targeted, moments),
                           moments, cache.policy);
    lines = stored_head(whole, merged, verdict.dropped_fields, context_.date());
  }
  // What may not be stored any more answers those who wait, and nobody after them.
  if (verdict.refused) verdict.terms = {.validate_always = true, .never_stale = true};
  verdict.terms.received_ms = now_ms();
  shorten(verdict.terms);
  const auto selectors = cache::unpack(old.selectors());
  const cache::Draft draft{.status = old.status(),
                           .head = lines,
                           .tags = old.tags(),
                           .selectors = selectors,
                           .terms = verdict.terms,
                           .length = Fill::kUnknown};
  in.consume(head_size);
  const bool reusable = server_is_reusable();
  count_answer();
  release_server(reusable);
  const bool kept =
      cache.store->confirm(*fetch_->fill, fetch_->stale, draft, cache.config.vary_limit, now_ms());
  if (kept && !verdict.refused) share();
  end_fetch();
}

// `remember`: others need not wait to find that out.
void Exchange::not_shared(bool remember, bool too_large) {
  const upstream::Cache& cache = *fetch_->use.cache;
  const std::shared_ptr<Fill> fill = fetch_->fill;
  const auto remember_ms = remember ? cache.config.hit_for_miss.count() : 0;
  Exchange* const reader = fetch_->reader;
  // Of what is too large a part is better asked for by itself.
  const bool takes = reader != nullptr && !(too_large && reader->wish_.range);
  const std::shared_ptr<cache::Store> store = cache.store;
  if (takes) {
    reader->take_answer(*this);
  } else {
    skip_answer();
  }
  store->pass(*fill, remember_ms, now_ms());
  end_fetch();
}

// Nobody reads it. Where all of it is here already, the connection can be used again; to wait for
// the rest would cost more than a new one. REQUIRES: Context::response is its head.
void Exchange::skip_answer() {
  io::Buffer& in = server_->stream().in();
  const std::size_t at = context_.response.size;
  const auto part = response_body_.read(in.data() + at, in.size() - at);
  if (!response_body_.done()) return drop_server();
  in.consume(at + part.consumed);
  const bool reusable = server_is_reusable();
  count_answer();
  release_server(reusable);
}

// What stands in the server's buffer from `at` on belongs to the body.
void Exchange::fill(std::size_t at) {
  const upstream::Cache& cache = *fetch_->use.cache;
  io::Buffer& in = server_->stream().in();
  const auto part = response_body_.read(in.data() + at, in.size() - at);
  if (part.state == BodyReader::State::bad)
    return cut_by_server(Failure::protocol, "the server's chunks are malformed");
  if (!part.data.empty() &&
      !cache.store->append(*fetch_->fill, part.data, cache.config.max_object, now_ms()))
    return fetch_cut();
  in.consume(at + part.consumed);
  if (response_body_.done()) {
    const bool reusable = server_is_reusable();
    count_answer();
    release_server(reusable);
    if (cache.store->complete(*fetch_->fill, cache.config.vary_limit)) share();
    return end_fetch();
  }
  server_->stream().release_empty_block();
  fill_on();
}

void Exchange::fill_on() {
  fetch_->paused = !fetch_->fill->may_go_on();
  if (!fetch_->paused) {
    server_->stream().read_soon();
    return await(Side::server, view_->pool->config.timeouts.response);
  }
  due_ = io::Deadlines::kNever;
  update_deadline();
}

// All text is static.
void Exchange::fetch_failed(unsigned status, std::string_view proxy_status, std::string_view text) {
  if (fetch_->validates() && status_ == 0)
    at(fetch_->cells->revalidations, Revalidation::failed).add();
  drop_server();
  count_request(metrics::code_of(status));
  fetch_->use.cache->store->fail(
      *fetch_->fill,
      {.status = static_cast<std::uint16_t>(status), .proxy_status = proxy_status, .text = text});
  end_fetch();
}

// What came of the body is not whole.
void Exchange::fetch_cut() {
  drop_server();
  count_request(metrics::Code::other);
  fetch_->use.cache->store->cut(*fetch_->fill);
  end_fetch();
}

// The last one who waited has left, or somebody has caught up.
void Exchange::nudged() {
  const Fill& fill = *fetch_->fill;
  if (fill.followers() == 0 && session_->listener().draining()) return fetch_cut();
  if (fill.followers() == 0 && !fetch_->needs_nobody()) {
    const std::uint64_t length = fill.length();
    const double share = fetch_->use.cache->config.finish_fill;
    const bool goes_on =
        answer_started_ && length != Fill::kUnknown &&
        static_cast<double>(fill.object()->size()) >= share * static_cast<double>(length);
    if (!goes_on) return fetch_cut();
  }
  if (fetch_->paused) fill_on();
}

void Exchange::on_drain() {
  if (fetch_->fill->followers() == 0) fetch_cut();
}

void Exchange::end_fetch() {
  Session& session = *session_;
  leave_session();
  session.exchange_done(false, true);
}

}  // namespace clockwise::proxy
