// One connection to a memcached server, with the requests whose answers it still owes.
//
// What is written stays until it is answered, so that it can be sent once more elsewhere. One
// thread; owned by its MemcachedServer, and after its end by the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/loop.h"
#include "io/stream.h"
#include "upstream/memcached_server.h"

namespace clockwise::upstream {

class MemcachedPipe final : public io::Stream::Owner, public io::Mortal, io::Deadlines::Node {
 public:
  MemcachedPipe(io::Loop& loop, MemcachedServer& home, std::uint32_t first_endpoint);
  ~MemcachedPipe() override = default;

  void connect();
  void ask(MemcachedCall& call, const MemcachedRequest& request);
  // Nothing comes of what it owes.
  void fail(CallFailure failure);
  // It has nothing to do: ends without a word to anybody. REQUIRES: idle().
  void close();

  [[nodiscard]] bool idle() const noexcept { return calls_.empty(); }
  [[nodiscard]] std::size_t load() const noexcept { return calls_.size(); }
  [[nodiscard]] bool quiet() const noexcept override { return stream_->quiet(); }

 private:
  friend class MemcachedCall;

  struct Owed {
    MemcachedCall* call = nullptr;  // null: nobody wants it any more
    std::uint32_t size = 0;         // octets of the request
    AnswerShape shape = AnswerShape::line;
    bool repeatable = false;
    bool has_data = false;
    bool repeated = false;
    bool begun = false;  // something of its answer was told
    std::uint64_t asked_ns = 0;
    io::Milliseconds due = 0;
  };

  // A queue in one piece of memory that is used again.
  class Queue {
   public:
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] Owed& front() noexcept { return ring_[head_]; }
    void drop_last() noexcept { --size_; }
    [[nodiscard]] Owed& at(std::size_t i) noexcept {
      return ring_[(head_ + i) & (ring_.size() - 1)];
    }
    void push(const Owed& owed);
    void pop() noexcept {
      head_ = (head_ + 1) & (ring_.size() - 1);
      --size_;
    }

   private:
    std::vector<Owed> ring_;  // a power of two
    std::size_t head_ = 0, size_ = 0;
  };

  void on_read(const io::error_code& error, std::size_t n) override;
  void on_readable(const io::error_code& error) override;
  void on_writable(const io::error_code& error) override;
  void on_connected(const io::error_code& error) override;
  void on_deadline() override;

  void connect_next(const io::error_code& last);
  void push(Owed owed, std::string_view line, std::string_view data,
            std::span<const std::string_view> more = {});
  void flush_soon();
  void flush();
  void await_answers();
  void read_answers();
  [[nodiscard]] bool read_value();
  [[nodiscard]] bool read_line();
  [[nodiscard]] static bool ends(AnswerShape shape, const memcached::Reply& reply, bool first);
  [[nodiscard]] bool doubt(bool had_data);
  [[nodiscard]] bool ask_elsewhere();
  void push_fence(bool had_data);
  [[nodiscard]] bool in_step();
  enum class Ahead : std::uint8_t { more, answer, bad };
  [[nodiscard]] Ahead look_ahead(AnswerShape shape, std::size_t& at, std::string_view& line) const;
  void answered(bool good);
  void drop_request(std::size_t size) noexcept;
  void set_deadline() noexcept;
  [[nodiscard]] io::Milliseconds due_of(const Owed& owed) const noexcept;
  void end(CallFailure failure, bool blame);
  void end_call(const Owed& owed, CallFailure failure);

  io::Loop& loop_;
  MemcachedServer& home_;
  std::unique_ptr<io::Stream> stream_;
  Queue calls_;
  std::uint64_t first_ = 0;  // number of the first in calls_
  std::string out_;          // requests that are not answered, behind out_begin_
  std::size_t out_begin_ = 0;
  std::size_t sent_ = 0;  // of out_: so many have been written
  std::size_t scanned_ = 0;
  std::uint32_t value_left_ = 0;
  bool in_value_ = false;
  bool connected_ = false;
  bool ended_ = false;
  bool leaving_ = false;  // nothing is asked any more
  // It may be out of step: nobody is told anything before the answer to a fence was seen where it
  // has to be, behind the answers to all that is owed.
  bool doubted_ = false;
  std::string fence_;         // that answer
  std::size_t ahead_ = 0;     // of what is owed, so much was seen
  std::size_t ahead_at_ = 0;  // where in in() the next begins
  bool flush_wanted_ = false;
  bool blocked_ = false;
  bool answered_any_ = false;  // it has been of use: its end may be a stale connection
  io::Milliseconds last_read_ = 0;
  std::uint32_t first_endpoint_, next_endpoint_ = 0;
};

}  // namespace clockwise::upstream
