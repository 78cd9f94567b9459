// One command of a memcached client, from its line to its answer: what is asked of which servers,
// and what their answers come to.
//
// The commands of a client are answered in their order, whatever the order in which servers answer.
// Recycled with the memory it holds. One thread.
#pragma once

#include <boost/intrusive/slist.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memcached/command.h"
#include "proxy/memcached_target.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

class MemcachedSession;

class MemcachedCommand final : public boost::intrusive::slist_base_hook<> {
 public:
  explicit MemcachedCommand(Context& context) : context_(context) {}

  // `data`: the data block with its CRLF. Both are only valid during the call.
  void start(MemcachedSession& session, const memcached::Command& command, std::string_view data);
  // What is refused here: answered with that, and the old value of `key` is deleted where it is not
  // empty.
  void refuse(MemcachedSession& session, std::string_view text, std::string_view key,
              std::uint32_t size);

  [[nodiscard]] bool done() const noexcept { return pending_ == 0; }
  // What the client gets; empty: nothing. REQUIRES: done().
  [[nodiscard]] std::string& answer() noexcept { return answer_; }
  // Octets of the client's that it accounts for.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  // The client is gone. What was asked is asked all the same, and the command gives itself back.
  void abandon() noexcept { session_ = nullptr; }
  // Lets go of memory that a large answer has left. False: it is too much to be kept at all.
  [[nodiscard]] bool forget_memory() noexcept;

 private:
  // What one server is asked.
  class Part final : public upstream::MemcachedCall {
   public:
    explicit Part(MemcachedCommand& command) noexcept : command_(command) {}

    MemcachedCommand& command_;
    upstream::MemcachedServer* server = nullptr;
    metrics::MemcachedCells* cells = nullptr;  // of its pool
    std::string line;                          // of a retrieval
    std::string text;                          // what came
    std::vector<std::uint32_t> keys;           // of a retrieval: places in the client's line
    struct Item {
      std::uint32_t key;  // place in `keys`
      std::size_t end;    // in `text`
    };
    std::vector<Item> items;
    std::size_t next_key = 0;              // of `keys`: the first that may still come
    std::size_t next_item = 0, taken = 0;  // of what went to the client
    memcached::ReplyKind kind = memcached::ReplyKind::end;  // of its last line
    bool ok = false;

   private:
    bool on_reply(const memcached::Reply& reply) override;
    bool on_item(const memcached::Reply& reply);
    void on_value(std::string_view octets, std::uint32_t left) override;
    void on_answered() override;
    void on_failed(upstream::CallFailure failure) override;
  };
  friend class Part;

  void begin(MemcachedSession& session, memcached::Verb verb, std::uint32_t size);
  [[nodiscard]] Part& add_part();
  void start_single(const memcached::Command& command, std::string_view data);
  void start_retrieval(const memcached::Command& command);
  void start_flush(const memcached::Command& command);
  void answer_here(std::string_view text);
  void ask(Part& part, const upstream::MemcachedRequest& request);
  void part_done();
  void finish();
  void finish_retrieval();
  void finish_single();
  void fail(Part& part, upstream::CallFailure failure);
  void count(const Part& part);
  [[nodiscard]] bool is_read() const noexcept;
  [[nodiscard]] bool is_swallowed(const Part& part) const noexcept;
  [[nodiscard]] std::string_view key_at(std::size_t i) const noexcept;

  Context& context_;
  MemcachedSession* session_ = nullptr;  // null: the client is gone
  memcached::Verb verb_ = memcached::Verb::get;
  bool noreply_ = false, quiet_ = false;
  bool error_on_read_ = false;
  std::uint32_t size_ = 0;
  std::uint32_t pending_ = 0;  // parts, and the command itself while it starts
  std::uint32_t parts_used_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;
  std::string keys_;                     // the client's, one behind another
  std::vector<std::uint32_t> key_ends_;  // in keys_
  std::vector<std::uint32_t> part_of_;   // by key; kNobody: nobody could be asked
  std::string error_;                    // of the first part that failed
  std::string answer_;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
};

}  // namespace clockwise::proxy
