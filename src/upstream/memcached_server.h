// One memcached server as one worker uses it: a few connections that all requests share.
//
// Requests are written one behind another, many in one system call, and their answers come in that
// order. Whoever asks is told of each line and each piece of a value as it comes, and copies what
// it wants to keep. A connection that is late, says what nobody asked for or breaks off is closed,
// so that no answer can reach a request it does not belong to; what it still owed fails, but for
// requests that another connection may carry once more (shared rules in docs/memcached.md).
//
// A server that failed `memcached.down_after` times in a row is away for all workers: requests fail
// at once, and one worker probes it every `memcached.retry_interval`. One thread each, but for the
// words of Backend that say so.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"
#include "io/loop.h"
#include "io/stream.h"
#include "memcached/reply.h"
#include "metrics/cells.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

class MemcachedPipe;
class MemcachedServer;

enum class CallFailure : std::uint8_t {
  refused,    // no connection
  timed_out,  // no connection, or no answer, in time
  closed,     // the connection ended
  garbled,    // what came is no answer to what was asked
  away,       // it failed too often, and is not asked
};
// "timed out"
[[nodiscard]] std::string_view describe(CallFailure failure) noexcept;

// How an answer ends.
enum class AnswerShape : std::uint8_t {
  line,    // with its first line
  values,  // with END, or an error
  meta,    // with its first line, or with the value that follows VA
  stats,   // with END
  fenced,  // with MN, to a `mn` that is part of the request: one answer before it, or none
};

// Of a command whose answer is not asked for in another way.
[[nodiscard]] constexpr AnswerShape shape_of(memcached::Verb verb) noexcept {
  if (memcached::is_retrieval(verb)) return AnswerShape::values;
  return memcached::is_meta(verb) ? AnswerShape::meta : AnswerShape::line;
}

struct MemcachedRequest {
  std::string_view line;                        // with its CRLF
  std::string_view data;                        // the data block, with its CRLF
  std::span<const std::string_view> more = {};  // of the data block, behind `data`
  AnswerShape shape = AnswerShape::line;
  bool repeatable = false;  // once more does no harm
  std::chrono::milliseconds patience{1'000};
};

// One request under way, and who waits for its answer. Derived from by whoever asks; one request at
// a time. May be destroyed at any time, also by its own functions.
class MemcachedCall {
 public:
  MemcachedCall() = default;
  MemcachedCall(const MemcachedCall&) = delete;
  MemcachedCall& operator=(const MemcachedCall&) = delete;

  [[nodiscard]] bool under_way() const noexcept { return pipe_ != nullptr; }
  // The answer is not wanted any more. It is read all the same when it comes.
  void forget() noexcept;
  // `next` is told in the place of this from now on. REQUIRES: under_way(), and `next` is not.
  void hand_over(MemcachedCall& next) noexcept;

 protected:
  virtual ~MemcachedCall() { forget(); }

  // A line of the answer. Of VALUE and VA the value follows. False: it answers something else, and
  // the request fails as garbled.
  [[nodiscard]] virtual bool on_reply(const memcached::Reply& reply) = 0;
  // A piece of the value; so many octets are `left` after it. An empty value has one empty piece.
  virtual void on_value(std::string_view octets, std::uint32_t left) = 0;
  // The answer is whole. Nothing comes after this.
  virtual void on_answered() = 0;
  // There is no answer, or not the rest of it. Nothing comes after this.
  virtual void on_failed(CallFailure failure) = 0;

 private:
  friend class MemcachedPipe;
  friend class MemcachedServer;
  MemcachedPipe* pipe_ = nullptr;
  std::uint64_t number_ = 0;
};

class MemcachedServer {
 public:
  MemcachedServer(io::Loop& loop, std::shared_ptr<Backend> backend, std::size_t worker);
  ~MemcachedServer();  // REQUIRES: idle()
  MemcachedServer(const MemcachedServer&) = delete;
  MemcachedServer& operator=(const MemcachedServer&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return backend_->name; }
  // The largest value of a short key that the server takes, as it said itself; 1 MiB before that.
  [[nodiscard]] std::uint32_t largest_item() const noexcept {
    return backend_->memcached.item_size_max.load(std::memory_order_relaxed);
  }
  // 10 bits for each of its three numbers; 0: not known yet.
  [[nodiscard]] std::uint32_t version() const noexcept {
    return backend_->memcached.version.load(std::memory_order_relaxed);
  }
  // The meta commands came with 1.6; an older server takes one for a mistake.
  [[nodiscard]] bool may_know_meta() const noexcept {
    constexpr std::uint32_t kFirst = (1U << 20) | (6U << 10);
    return version() == 0 || version() >= kFirst;
  }
  [[nodiscard]] metrics::BackendCells& cells() noexcept { return cells_; }
  // It is not asked now; ask() would fail.
  [[nodiscard]] bool away() const noexcept;

  // Settings of the newest snapshot. A new address is a new MemcachedServer.
  void configure(const std::shared_ptr<const Pool>& pool, const Server& server);

  // Sends a request at the end of this turn. Whatever comes of it is told to `call` later, never
  // from within. False: the server is away, and nothing was done.
  [[nodiscard]] bool ask(MemcachedCall& call, const MemcachedRequest& request);

  // A write of `key` failed, or went elsewhere: what the server holds under it is old.
  void missed_write(std::string_view key);
  // The same of flush_all.
  void missed_flush();

  // Every tick: probes it when it is away and nobody else does; asks who it is when nobody knows.
  void on_tick();

  // As of ServerConnections.
  void hold() noexcept { ++holders_; }
  void let_go() noexcept { --holders_; }
  void retire();
  [[nodiscard]] bool disposable() const noexcept { return retired_ && holders_ == 0 && idle(); }
  [[nodiscard]] bool idle() const noexcept;  // nothing is under way
  std::size_t close_idle();                  // connections; how many there were
  void drop_all();                           // nothing is asked any more

 private:
  friend class MemcachedPipe;
  class Probe;
  class Settings;

  [[nodiscard]] MemcachedPipe& pipe();
  [[nodiscard]] MemcachedPipe& open();
  void remove(MemcachedPipe& pipe);
  // It may be out of step: it answers what it owes, and is asked nothing more.
  void distrust(MemcachedPipe& pipe);
  void failed(CallFailure failure);
  void found();
  void fail_all();

  io::Loop& loop_;
  std::shared_ptr<Backend> backend_;
  metrics::BackendCells& cells_;
  std::shared_ptr<HealthMark> health_;
  std::shared_ptr<HealthBoard> board_;
  std::vector<Endpoint> endpoints_;
  config::Memcached settings_;
  io::Milliseconds connect_timeout_ = 0, idle_timeout_ = 0;
  std::chrono::milliseconds response_timeout_{0};
  using Pipes = std::vector<std::unique_ptr<MemcachedPipe>>;
  Pipes pipes_, leaving_;
  std::unique_ptr<Probe> probe_;
  std::size_t next_pipe_ = 0;
  std::uint32_t turn_ = 0;  // new connections take the addresses of a name in turn
  std::uint32_t holders_ = 0;
  bool retired_ = false;
  bool off_ = false;  // it is `down` in the configuration
};

}  // namespace clockwise::upstream
