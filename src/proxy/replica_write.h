// A write of an item that several servers hold: whom it goes to, in what order, and what it comes
// to.
//
// What has a condition is decided by the first owner that can be asked, since each server counts
// uniques for itself; where it has done it, the others store the same. All else goes to all owners
// at once. An owner that is away, or does not answer, is told that it has missed a write. Where
// one owner has done what another found nothing for, or could not do, the other one's item is
// deleted: a copy may have come there meanwhile (upstream/item_copy.h).
//
// What counts is the answer of the first owner that had the item; but a failure of any is one of
// the whole. One thread; recycled with its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memcached/replicas.h"
#include "proxy/context.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

class ReplicaWrite {
 public:
  struct Result {
    bool answered = false;  // false: `server` gave no answer, and `failure` says why
    bool first = false;     // it is the answer of who was asked first
    bool made = false;      // nobody had the item before
    memcached::ReplyKind kind = memcached::ReplyKind::error;
    upstream::CallFailure failure = upstream::CallFailure::away;
    std::string_view text;  // of the answer: its line and what came with it, with CRLF
    upstream::MemcachedServer* server = nullptr;
  };
  class Waiter {
   public:
    // Nothing comes after this. `result` is valid during the call.
    virtual void on_written(const Result& result) = 0;

   protected:
    ~Waiter() = default;
  };

  explicit ReplicaWrite(Context& context) noexcept : context_(context) {}
  ReplicaWrite(const ReplicaWrite&) = delete;
  ReplicaWrite& operator=(const ReplicaWrite&) = delete;

  // `key` as the ring hashes it, `data` with its CRLF; both, and the command, are only needed
  // during the call. Nobody waits where `waiter` is null; it is never told from within. `left_out`:
  // bit n for the owner at place n. False: no owner can be asked, and those were told that they
  // have missed a write. After that, and after on_written(), the object is no longer the caller's.
  bool start(PoolView& view, std::string_view key, const memcached::Command& command,
             std::string_view data, Waiter* waiter, std::uint32_t left_out = 0);
  // It asks some of the owners later than others. REQUIRES: start() gave true just now.
  [[nodiscard]] bool has_steps() const noexcept {
    return step_ == Step::decide || step_ == Step::change;
  }
  // Nobody waits any more; it is done all the same.
  void abandon() noexcept { waiter_ = nullptr; }

 private:
  enum class Step : std::uint8_t {
    change,  // what is there, before anything is made where nothing is
    all,
    decide,
    follow,  // what was decided
    settle,  // where a copy may have come that is too old
  };

  class Call final : public upstream::MemcachedCall {
   public:
    explicit Call(ReplicaWrite& write) noexcept : write_(write) {}

    [[nodiscard]] memcached::Did did() const noexcept { return memcached::did(verb, kind); }

    upstream::MemcachedServer* server = nullptr;
    std::uint32_t place = 0;
    memcached::Verb verb = memcached::Verb::set;
    memcached::ReplyKind kind = memcached::ReplyKind::error;
    upstream::CallFailure failure = upstream::CallFailure::away;
    bool answered = false;
    bool counts = true;  // its answer may be what the client is told
    std::string text;

   private:
    bool on_reply(const memcached::Reply& reply) override;
    void on_value(std::string_view octets, std::uint32_t left) override;
    void on_answered() override;
    void on_failed(upstream::CallFailure failure) override;

    ReplicaWrite& write_;
  };

  void find_owners(PoolView& view, std::uint32_t left_out);
  void begin(const memcached::Command& command, std::string_view data);
  void keep_for_later(const memcached::Command& command, std::string_view data);
  void ask_all(memcached::Verb verb, std::string_view line, std::string_view data);
  void ask(std::uint32_t place, memcached::Verb verb, std::string_view line, std::string_view data);
  void tell_the_absent();
  void call_done();
  [[nodiscard]] bool goes_on();
  [[nodiscard]] bool make();
  [[nodiscard]] bool follow();
  [[nodiscard]] bool settle();
  [[nodiscard]] Result result() const noexcept;
  [[nodiscard]] Result answer_of(const Call& call) const noexcept;
  void end();
  void let_go();

  Context& context_;
  PoolView* view_ = nullptr;
  Waiter* waiter_ = nullptr;
  Step step_ = Step::all;
  std::string key_;
  // Of the step that may come: all but the first are asked, or all once more.
  memcached::Verb later_verb_ = memcached::Verb::set;
  std::string later_line_, later_data_;
  std::vector<upstream::MemcachedServer*> owners_;  // by place; null: left out
  std::uint32_t present_ = 0;                       // bit n: the owner at place n can be asked
  std::uint32_t pending_ = 0;                       // calls, and the write itself while it asks
  bool made_ = false;                               // as of Result
  std::size_t held_ = 0;                            // in Context::memcached_held
  std::vector<std::unique_ptr<Call>> calls_;
  std::uint32_t calls_used_ = 0;
};

}  // namespace clockwise::proxy
