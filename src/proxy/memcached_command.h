// One command of a memcached client, from its line to its answer: what is asked of which servers,
// and what their answers come to.
//
// The commands of a client are answered in their order, whatever the order in which servers answer.
// Where several servers hold an item, what one does not have is asked of the next, and what is
// written is written to all: see memcached_replicas.cpp. Recycled with the memory it holds. One
// thread.
#pragma once

#include <boost/intrusive/slist.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memcached/command.h"
#include "proxy/memcached_target.h"
#include "proxy/replica_write.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

class MemcachedSession;

// A few of many keys: a bit for each, the same for those that happen to be alike.
using KeyMarks = std::uint64_t;
[[nodiscard]] KeyMarks mark_of(std::string_view key) noexcept;

class MemcachedCommand final : public boost::intrusive::slist_base_hook<>, ReplicaWrite::Waiter {
 public:
  explicit MemcachedCommand(Context& context) : context_(context) {}

  // `data`: the data block with its CRLF. Both are only valid during the call.
  void start(MemcachedSession& session, const memcached::Command& command, std::string_view data);
  // What is refused here: answered with that, and the old value of `key` is deleted where it is not
  // empty.
  void refuse(MemcachedSession& session, std::string_view text, std::string_view key,
              std::uint32_t size);

  [[nodiscard]] bool done() const noexcept { return pending_ == 0; }
  // Not all servers are asked at once. A later command of the client must not overtake it until it
  // is done: not one that writes a key that it searches for, and none about a key that it decides.
  [[nodiscard]] bool has_steps() const noexcept { return (searched_ | decided_) != 0; }
  [[nodiscard]] KeyMarks searched() const noexcept { return searched_; }
  [[nodiscard]] KeyMarks decided() const noexcept { return decided_; }
  // What the client gets; empty: nothing. REQUIRES: done().
  [[nodiscard]] std::string& answer() noexcept { return answer_; }
  // Octets of the client's that it accounts for.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  // Keys that servers are asked for, or about.
  [[nodiscard]] std::size_t keys() const noexcept { return key_ends_.size(); }
  // As of an answer of HTTP: 4xx the client's mistake, 5xx a server that failed.
  [[nodiscard]] metrics::Code code() const noexcept { return code_; }
  [[nodiscard]] std::uint64_t begun_ns() const noexcept { return begun_ns_; }
  // Octets of answers that have come so far.
  [[nodiscard]] std::size_t held() const noexcept { return held_ - size_; }
  // The client is gone. What was asked is asked all the same, and the command gives itself back.
  void abandon() noexcept { session_ = nullptr; }
  // What it holds is not counted any more.
  void let_go() noexcept;
  // Lets go of memory that a large answer has left. False: it is too much to be kept at all.
  [[nodiscard]] bool forget_memory() noexcept;

 private:
  // What one server is asked.
  class Part final : public upstream::MemcachedCall {
   public:
    explicit Part(MemcachedCommand& command) noexcept : command_(command) {}

    MemcachedCommand& command_;
    upstream::MemcachedServer* server = nullptr;
    PoolView* view = nullptr;         // of its pool
    std::string line;                 // of a retrieval
    std::string text;                 // what came
    std::vector<std::uint32_t> keys;  // of a retrieval: places in the client's line
    struct Item {
      std::uint32_t key;  // place in `keys`
      std::size_t end;    // in `text`
    };
    std::vector<Item> items;
    bool stands_in = false;    // for the owner
    bool asked = false;        // false: the owner is out, and is not asked
    bool aside = false;        // the client is told only where it says better than the others
    bool overflowed = false;   // there was no memory for what came
    bool failed = false;       // what it does not have is not known, and it is not asked again
    std::size_t next_key = 0;  // of `keys`: the first that may still come
    std::size_t next_item = 0, taken = 0;                   // of what went to the client
    memcached::ReplyKind kind = memcached::ReplyKind::end;  // of its last line
    bool ok = false;

   private:
    bool on_reply(const memcached::Reply& reply) override;
    bool on_item(const memcached::Reply& reply);
    [[nodiscard]] std::uint32_t place_of(std::uint32_t key) const noexcept;
    void keep(std::string_view octets, std::string_view end);
    void on_value(std::string_view octets, std::uint32_t left) override;
    void on_answered() override;
    void on_failed(upstream::CallFailure failure) override;
  };
  friend class Part;

  void begin(MemcachedSession& session, memcached::Verb verb, std::uint32_t size);
  [[nodiscard]] bool hold(std::size_t octets) noexcept;
  // Whom to ask for a key; without a server where nobody is on the ring.
  struct Whom {
    PoolView* view = nullptr;
    upstream::MemcachedServer* server = nullptr;
    upstream::MemcachedServer* home = nullptr;
    bool stands_in = false;
    bool asked = false;
  };
  [[nodiscard]] PoolView& view_of(std::string_view key) const;
  [[nodiscard]] Whom whom(PoolView& view, std::string_view key) const;
  [[nodiscard]] Part& add_part(const Whom& whom);
  [[nodiscard]] std::uint32_t part_for(const Whom& whom);
  void add_key(std::uint32_t part, std::uint32_t key);
  void ask_parts(std::uint32_t from);
  void set_key(std::string_view key);
  void start_single(const memcached::Command& command, std::string_view data);
  void start_retrieval(const memcached::Command& command);
  void tell_home(const Whom& whom, const upstream::MemcachedRequest& request);
  void start_flush(const memcached::Command& command);
  void start_version();
  void answer_here(std::string_view text);
  void ask(Part& part, upstream::MemcachedRequest request);
  void ask_all(PoolView& view, std::string_view line);
  void part_done();
  void finish();
  void judge(bool answered, memcached::ReplyKind kind) noexcept;
  void finish_retrieval();
  void finish_version();
  void finish_single();
  void tell_failure();
  void tell(std::string& text, memcached::ReplyKind kind);
  void fail(Part& part, std::string_view cause);
  void count(const Part& part);
  void count(PoolView& view, metrics::MemcachedResult result, std::size_t n = 1);
  [[nodiscard]] static bool is_done(const Part& part) noexcept;
  [[nodiscard]] bool is_swallowed(memcached::ReplyKind kind) const noexcept;
  [[nodiscard]] std::string_view key_at(std::size_t i) const noexcept;

  // memcached_replicas.cpp: items that several servers hold
  [[nodiscard]] bool write(PoolView& view, const memcached::Command& command,
                           std::string_view data);
  void on_written(const ReplicaWrite::Result& result) override;
  [[nodiscard]] std::string label_of(const ReplicaWrite::Result& result) const;
  [[nodiscard]] Whom begin_search(PoolView& view, std::uint32_t key, std::uint32_t keys);
  void search_with(Part& part, std::string_view line, const memcached::Command& command);
  [[nodiscard]] bool searches_on();
  void take_stock(Part& part);
  void take_stock_of_items(Part& part, bool answered);
  void take_back_error(Part& part);
  void ask_next(std::uint32_t key);
  [[nodiscard]] bool has_expired(std::uint32_t key) const noexcept;
  [[nodiscard]] bool has_failed(const upstream::MemcachedServer& server) const noexcept;
  void end_search();
  void tell_best();
  void copy_back(std::uint32_t key);
  void touch_others(std::uint32_t key);

  Context& context_;
  MemcachedSession* session_ = nullptr;  // null: the client is gone
  memcached::Verb verb_ = memcached::Verb::get;
  bool noreply_ = false, quiet_ = false;
  bool fenced_ = false;  // the server is quiet by itself
  metrics::Code code_ = metrics::Code::c2xx;
  std::uint64_t begun_ns_ = 0;
  std::uint32_t size_ = 0;
  std::size_t held_ = 0;       // in Context::memcached_held, with size_
  std::uint32_t pending_ = 0;  // parts, and the command itself while it starts
  std::uint32_t parts_used_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;
  std::string keys_;                     // the client's, one behind another
  std::vector<std::uint32_t> key_ends_;  // in keys_
  std::vector<std::uint32_t> part_of_;   // by key
  std::string error_;                    // what the client is told of the first that failed
  std::string answer_;

  // The search for a key among its owners.
  struct Search {
    std::uint8_t place = 0;  // of who was asked last
    bool found = false;
    std::uint32_t missed = 0;  // bit n: the owner at place n does not have it
  };
  std::vector<Search> searches_;      // by key; empty: each has one owner
  bool alone_ = false;                // and nobody but the first owner is asked
  std::uint32_t round_ = 0;           // the first part of the newest round
  std::int64_t exptime_ = 0;          // of a retrieval
  std::optional<std::int64_t> sets_;  // the lifetime that a read sets
  PoolView* view_ = nullptr;          // of what is written to several owners
  KeyMarks searched_ = 0, decided_ = 0;
};

}  // namespace clockwise::proxy
