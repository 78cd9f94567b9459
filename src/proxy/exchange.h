// One request and its answer, from a scanned head to the last octet sent.
//
// Told of events by the session (client side) and the server connection; each event ends in one of:
// more is read, more is written, a server is tried, or the exchange is over. Decisions live in
// decide.h and body.h, which know no socket; this class moves octets and keeps the account.
//
// In order: start -> lease -> (wait) -> (connect) -> send_request -> [relay the request body] ->
// read_response_head -> [relay the response body] -> finish. Counted and logged once, in finish().
//
// With a cache the order is: start -> ask_cache -> [wait for a fetch] -> answer_from -> send_stored
// -> finish. The fetch is an exchange of its own: fetch -> [ask_shared] -> ask_origin -> lease ->
// ... -> read_response_head -> begin_fill -> [fill] -> [share] -> end_fetch.
//
// In front of memcached servers an item is asked for instead of all that: see exchange_item.cpp.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/serve.h"
#include "cache/store.h"
#include "http/cache_answer.h"
#include "proxy/body.h"
#include "proxy/context.h"
#include "proxy/decide.h"
#include "proxy/fetch.h"
#include "proxy/fill_watch.h"
#include "proxy/hedge.h"
#include "proxy/item_call.h"
#include "proxy/item_lease.h"
#include "proxy/outbox.h"
#include "proxy/shared_lookup.h"
#include "proxy/splice.h"
#include "upstream/connections.h"

namespace clockwise::proxy {

class Session;

class Exchange final : upstream::ServerConnection::User,
                       HedgeClock::Place,
                       Hedge::Owner,
                       ItemCall::Owner,
                       ReplicaWrite::Waiter,
                       ItemLease::Owner,
                       FillWatch::Owner,
                       SharedLookup::Owner {
 public:
  explicit Exchange(Context& context) noexcept : context_(context) {}

  // Begins with the head in Context::request, which stands at the front of the client's buffer.
  void start(Session& session);
  // Begins a fetch for the store: its request stands in the buffer of a session without a client.
  void fetch(Session& session, Fetch fetch);
  // The same, but that request cannot be made.
  void refuse_fetch(Session& session, Fetch fetch);
  // The head was refused by the scanner: answers and ends.
  void refuse(Session& session);
  // No whole head came in time: 408.
  void time_out_head(Session& session);

  void on_client_read(const io::error_code& error, std::size_t n);
  void on_client_readable(const io::error_code& error);
  void on_client_writable(const io::error_code& error);
  void on_deadline(io::Milliseconds now);
  // The proxy stops: a fetch that nobody waits for ends.
  void on_drain();
  // The client connection is being dropped; ends the exchange without another word.
  void abandon();

 private:
  static constexpr std::size_t kLogParts = 6;
  enum class Phase : std::uint8_t {
    over,
    routing,
    queued,
    connecting,
    sending,
    head,
    body,
    replying,
    waiting,  // for a fetch
    sharing,  // the second store is asked
    stored,   // an answer from the store goes out
    upload,   // the body of a PUT that memcached is to store comes
    item      // a memcached server is asked, or its item goes out
  };
  enum class Side : std::uint8_t { client, server };

  // exchange.cpp: begin, account, end
  void begin(Session& session);
  void turn_away();
  void choose_server();
  [[nodiscard]] std::uint64_t position(const ring::Ring& ring, const http::KeyTemplate& key);
  [[nodiscard]] std::string_view key_of(const http::KeyTemplate& key);
  void reply(unsigned status, std::string_view proxy_status, std::string_view text);
  void add_placement(std::string& lines) const;  // Clockwise-Key-Hash and -Ring
  void finish();
  void cut(std::string_view reason);
  void cut_by_server(Failure failure, std::string_view reason);
  void client_left();
  void client_too_slow();
  [[nodiscard]] bool client_moves() noexcept;
  void server_too_slow();
  void leave_session();
  void count_answer();
  void count_request(metrics::Code code);
  void count_remapped(std::uint64_t hash);
  void remember_for_log();
  void remember_refused_for_log();
  void keep_for_log(const std::array<std::string_view, kLogParts>& parts);
  [[nodiscard]] std::string_view own_id() noexcept;
  void log();
  [[nodiscard]] io::Milliseconds now() const noexcept { return context_.loop.now(); }
  // The same as the cache counts.
  [[nodiscard]] std::int64_t now_ms() const noexcept { return static_cast<std::int64_t>(now()); }
  void await(Side side, std::chrono::milliseconds patience);
  void await_client();
  void update_deadline();
  void restart_total() noexcept;
  void add_content(const BodyReader::Part& part, BodyWriter& writer) noexcept;
  void watch_client();
  void on_client_read_in_queue(const io::error_code& error);

  // exchange_attempt.cpp: one server after another
  void route();
  [[nodiscard]] bool has_candidate() const;
  void lease(bool fresh);
  void wait_for_connection();
  void waited_too_long();
  void on_server_leased(upstream::ServerConnection& server) override;
  void on_server_left() override;
  void follow_changes();
  void begin_attempt(upstream::ServerConnection& server);
  void fail(Failure failure);
  [[nodiscard]] Verdict verdict_on(Failure failure);
  void lean_on_hedge(Failure failure);
  void try_next(const Verdict& verdict);
  void give_up(Failure failure);
  void attempt_ended(std::optional<Failure> failure, bool reused);
  void tell_failure(upstream::ServerConnections& target, Failure failure, bool trial);
  void end_trial(bool good);
  void leave_trial();
  void count_attempt(metrics::Code code);
  void release_server(bool reusable);
  void drop_server();
  [[nodiscard]] bool refuse_answer();
  void pass_on_refused();
  void release_refused();

  // exchange_hedge.cpp: a second attempt beside a slow one
  [[nodiscard]] const config::Hedge* hedging() const noexcept;
  void expect_answer();
  void on_late() override;
  void write_hedge(const upstream::ServerConnections& target) override;
  void on_hedge_answered(unsigned status) override;
  void on_hedge_failed(upstream::ServerConnections& target, Failure failure, bool reused) override;
  void take_over_hedge();
  void end_hedge(metrics::Hedged result);
  void note_latency();

  // exchange_request.cpp: towards the server
  void send_request();
  void write_request_head(const upstream::ServerConnections& target);
  void rescan_head();
  [[nodiscard]] bool add_request_body(std::size_t at);
  void request_written(Outbox::Result result);
  void request_awaits(Side side);
  void relay_request_body();
  void request_body_bad(std::string_view why);
  void body_too_large();
  void stop_request(unsigned status, metrics::RequestError error, std::string_view why);
  void release_request_octets();
  void request_sent();

  // exchange_response.cpp: towards the client
  void on_server_connected(const io::error_code& error) override;
  void on_server_read(const io::error_code& error, std::size_t n) override;
  void on_server_readable(const io::error_code& error) override;
  void on_server_writable(const io::error_code& error) override;
  void on_server_end(const io::error_code& error);
  void read_response_head();
  [[nodiscard]] bool pass_interim();
  [[nodiscard]] bool relay_interim(std::string_view octets, const http::ResponseHead& head);
  void answer_came();
  void answer_counts();
  void begin_response();
  [[nodiscard]] bool add_response_body(std::size_t at);
  [[nodiscard]] std::string_view own_lines();
  void hide_surrogate_control();
  void count_octets();
  void response_written(Outbox::Result result);
  void relay_response_body();
  void response_progress();
  [[nodiscard]] bool server_is_reusable();
  void answer_awaits(Side side);

  // exchange_cache.cpp: the client is answered from the store
  [[nodiscard]] bool ask_cache();
  [[nodiscard]] bool look_up();
  [[nodiscard]] bool join_fetch(const cache::Wanted& wanted, const cache::Store::Found& found);
  [[nodiscard]] cache::Asked asked() const;
  [[nodiscard]] bool try_again();
  void begin_fetch(const std::shared_ptr<cache::Fill>& fill, const cache::ObjectRef& stale,
                   metrics::CacheFetch reason, bool reads);
  void fetch_beside(const cache::Wanted& wanted, const cache::ObjectRef& object,
                    metrics::CacheFetch reason);
  [[nodiscard]] bool is_asked_anew(const cache::Object& object) const;
  [[nodiscard]] bool wants_refresh(const cache::Object& object) const;
  void await_fill();
  [[nodiscard]] bool more_is_there();
  void on_fill() override;
  void fill_changed();
  [[nodiscard]] bool take_offer();
  void fill_begun();
  void fill_failed();
  void waited_for_fill();
  [[nodiscard]] bool stale_is_usable() const;
  void answer_stale();
  void leave_fill();
  void go_on_alone();
  void take_answer(Exchange& fetch);
  void answer_from(cache::ObjectRef object, std::uint64_t length, metrics::CacheResult result);
  void write_stored_head(const cache::Served& served, std::uint64_t length);
  void write_stored_framing(const cache::Served& served, std::uint64_t length);
  void begin_part(const cache::ByteRange& part);
  [[nodiscard]] bool next_part();
  void part_head(const cache::ByteRange& part, std::string& out) const;
  [[nodiscard]] std::uint64_t multipart_length() const;
  void send_stored();
  void send_stored_chunks();
  void count_sent(std::uint64_t of_body);
  void stored_written(Outbox::Result result);
  void stored_done();
  [[nodiscard]] bool add_cache_status(std::string& lines) const;
  void count_cached();
  void see_invalidation();
  void invalidate(std::string_view key);
  void leave_cache();

  // exchange_item.cpp: an item of memcached is asked for, or written
  void ask_item();
  void refuse_item_method();
  [[nodiscard]] bool leads_nowhere() const;
  void refuse_item_path();
  [[nodiscard]] bool choose_item_server();
  void await_item();
  void take_item_server(ring::ServerIndex index);
  void tell_home();
  [[nodiscard]] bool reads_item() const noexcept;
  [[nodiscard]] bool try_next_item_server(upstream::CallFailure failure);
  void send_item();
  void ask_server(std::string_view line, std::string_view data, upstream::AnswerShape shape,
                  bool repeatable);
  void read_item();
  void send_read();
  void read_item_again();
  void begin_write();
  void read_upload();
  void item_too_large();
  void write_item();
  void check_item();
  void send_write();
  void remove_item();
  void send_removal();
  bool on_item_reply(const memcached::Reply& reply) override;
  void on_item_value(std::string_view octets, std::uint32_t left) override;
  void on_item_answered() override;
  void on_item_failed(upstream::CallFailure failure) override;
  [[nodiscard]] bool begin_relay();
  void relay_item(std::string_view octets, std::uint32_t left);
  void keep_value(std::string_view octets, std::uint32_t left);
  void send_kept();
  void rescan_upload_head();
  void leave_item();
  void pool_is_late();
  void item_unavailable(unsigned status, std::string_view text);
  void item_crowded();
  [[nodiscard]] std::uint64_t most_held() const noexcept;
  void item_missing();
  void item_refused();
  void go_to_fallback();
  [[nodiscard]] bool fetches_item() const noexcept;
  void leave_pool();
  void fill_item();
  [[nodiscard]] bool wants_lease(const cache::ObjectRef& before) const;
  void ask_lease();
  void on_lease(ItemLease::Result result) override;
  void stop_budget();
  [[nodiscard]] bool item_is_known();
  [[nodiscard]] bool unpack_item();
  void answer_item();
  void write_item_head(unsigned status, std::string_view lines, std::uint64_t length);
  void answer_write();
  void item_written(Outbox::Result result);
  void item_writable();
  void count_item();
  void count_item_error();

  // exchange_item_replicas.cpp: an item that several servers hold
  [[nodiscard]] bool choose_owner();
  [[nodiscard]] bool read_elsewhere(bool failed);
  void copy_item_back();
  [[nodiscard]] bool write_owners();
  [[nodiscard]] bool remove_from_owners();
  void on_written(const ReplicaWrite::Result& result) override;

  // exchange_fetch.cpp: the fetch that fills the store
  void take_on(Session& session, Fetch fetch);
  void begin_fill();
  void shorten(cache::Terms& terms);
  [[nodiscard]] bool keep_answer();
  void confirm_stored(const cache::Moments& moments);
  void not_shared(bool remember, bool too_large);
  void skip_answer();
  void fill(std::size_t at);
  void fill_on();
  void fetch_failed(unsigned status, std::string_view proxy_status, std::string_view text);
  void fetch_cut();
  void nudged();
  void end_fetch();

  // exchange_shared.cpp: a second store of the cache
  void ask_shared();
  void ask_origin();
  void put_conditions();
  [[nodiscard]] std::string selectors_of(std::string_view names) override;
  [[nodiscard]] SharedLookup::Use use_of(const cache::Entry& entry) override;
  void on_shared(SharedLookup::Result result) override;
  [[nodiscard]] cache::Terms terms_here(const cache::Entry& entry) const;
  void take_shared(const cache::Draft& draft, std::span<const std::string_view> body);
  void share();

  // exchange_splice.cpp: big plain bodies
  [[nodiscard]] bool try_splice(BodyReader& body, io::Stream& from, io::Stream& to,
                                bool towards_client);
  void run_splice();

  Context& context_;
  Session* session_ = nullptr;
  PoolView* view_ = nullptr;
  upstream::ServerConnections* target_ = nullptr;
  upstream::ServerConnection* server_ = nullptr;  // lent
  upstream::Waiter waiter_{*this};                // for a connection to target_

  // An answer that said the server could not, while another server is asked: head and what came of
  // the body stand in its buffer. It is passed on when nobody has a better one.
  struct Refused {
    upstream::ServerConnections* target = nullptr;
    upstream::ServerConnection* server = nullptr;  // lent
    ring::ServerIndex index = 0;
    bool whole = false;  // and the connection can be used again
  };
  Refused refused_;
  std::unique_ptr<Hedge> hedge_;  // rare, and gone with the answer

  // What the client gets from the store.
  struct Stored {
    cache::ObjectRef object;  // that goes out, or the stale one at hand
    cache::Cursor cursor;
    std::uint64_t skip = 0;  // octets up to the part that goes out
    std::uint64_t end = 0;  // of the part that goes out; kUnknown: of a body whose end is not known
    std::vector<cache::ByteRange> parts;  // of multipart/byteranges
    std::size_t next_part = 0;
    std::string boundary;
    bool ended = false;  // the last chunk went out
  };
  Stored stored_;
  cache::Wish wish_;
  std::shared_ptr<FillWatch> watch_;  // null: waits for no fetch
  std::unique_ptr<Fetch> fetch_;      // null: this exchange has a client
  Exchange* leads_ = nullptr;         // the fetch that was begun for this request
  std::string for_reader_only_;       // lines of the answer that are not stored
  std::unique_ptr<Item> item_;        // of memcached; kept with its memory
  std::string_view item_allow_;       // static: the methods that a 405 names
  // Of an unsafe request: what its success makes doubtful.
  std::string target_key_, target_authority_, target_uri_;

  BodyReader request_body_;
  BodyWriter request_writer_;
  BodyWriter response_writer_;
  BodyReader response_body_;
  Outbox to_server_, to_client_;
  std::unique_ptr<Splice> splice_;

  std::uint64_t hash_ = 0;
  std::uint64_t started_ns_ = 0;                          // first octet of the request
  std::uint64_t dispatched_ns_ = 0;                       // this attempt
  io::Milliseconds due_ = io::Deadlines::kNever;          // awaited_ must have moved by then
  io::Milliseconds answer_due_ = io::Deadlines::kNever;   // the head of an answer: timeouts.total
  io::Milliseconds watch_due_ = io::Deadlines::kNever;    // look whether the client is still there
  io::Milliseconds request_due_ = io::Deadlines::kNever;  // the request must be whole by then
  std::uint32_t request_octets_ =
      0;  // at the front of the client's buffer that belong to the request
  std::uint32_t response_octets_ = 0;  // at the front of the server's buffer, being written
  std::uint32_t head_size_ = 0;
  std::size_t response_scanned_ = 0;
  std::vector<ring::ServerIndex> tried_;  // servers that failed this request
  std::uint32_t retries_left_ = 0;
  std::uint32_t attempts_ = 0;
  std::uint32_t interims_ = 0;
  ring::ServerIndex home_ = 0;          // the owner
  ring::ServerIndex target_index_ = 0;  // the server being tried
  Failure last_failure_ = Failure::no_server;
  std::uint16_t status_ = 0;
  Phase phase_ = Phase::over;
  // Why the cache did not answer by itself (RFC 9211 2.2).
  enum class Forwarded : std::uint8_t { no, uri_miss, vary_miss, stale, request, method, bypass };
  Forwarded forwarded_ = Forwarded::no;
  metrics::CacheResult result_ = metrics::CacheResult::bypass;
  std::uint8_t cache_tries_ = 0;
  bool asked_cache_ = false;
  bool asked_pool_ = false;       // of memcached servers
  bool item_waits_ = false;       // until the client takes more
  bool routed_ = false;           // a server was to answer it
  bool reader_of_fetch_ = false;  // a fetch was begun for it
  bool found_elsewhere_ = false;  // and found the answer in the second store
  Side awaited_ = Side::server;
  http::CacheAnswer from_cache_ = http::CacheAnswer::unknown;
  http::Method method_ = http::Method::get;
  std::uint8_t minor_version_ = 1;
  bool keep_alive_ = true;
  bool accepts_json_ = false;
  bool replayable_ = true;
  bool passing_refused_ = false;
  bool fresh_tried_ = false;
  bool request_written_ = false;        // some octet of it, in this attempt
  bool request_open_ = false;           // not counted yet
  bool attempt_open_ = false;           // not counted yet
  bool server_failed_writing_ = false;  // its answer may still be readable
  bool unanswered_ = false;             // by any server: the proxy gave up
  bool answer_started_ = false;         // an octet of a final answer went to the client
  bool server_keep_alive_ = false;
  bool trial_ = false;           // this attempt decides about its server
  bool no_body_answer_ = false;  // HEAD, 204, 304
  std::uint64_t sent_to_client_ = 0;
  std::size_t unsent_ = 0;  // at the last look at a client that takes its time

  // X-Request-Id where the client sent none that can be used; made with the first attempt.
  std::array<char, RequestIds::kSize> made_id_;
  bool has_made_id_ = false;

  // Kept for the access log only.
  std::string_view reason_;  // static: why the proxy answered itself, or the answer was cut
  bool logged_ = false;
  std::string log_text_;  // method, target, host, referer, user agent, id, one after another
  std::array<std::uint32_t, kLogParts> log_ends_{};
};

}  // namespace clockwise::proxy
