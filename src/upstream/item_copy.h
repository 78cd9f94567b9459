// Copies one item from a memcached server to another that has none: its value, its flags and the
// time it has left.
//
// The copy is put only where nothing is. Then the source is looked at again: where the item has
// gone or is another one by now, the copy is taken away, so that nothing comes back that a client
// has deleted. Whoever deletes on both servers must, where only the source had it, delete once more
// on the other: a copy that looked before that is there by then.
//
// An item that is stale, or stands for one that somebody makes, or is about to end, is not copied.
// Servers before 1.6 cannot tell enough of an item. One thread; used again and again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/loop.h"
#include "upstream/memcached_server.h"

namespace clockwise::upstream {

class ItemCopy final : public MemcachedCall {
 public:
  enum class Result : std::uint8_t {
    copied,
    present,   // something was there already
    outdated,  // the item has gone or changed meanwhile, and the copy is away again
    unfit,     // it is not to be copied, or there was no room for it
    failed,    // a server did not answer, or said that it cannot
  };
  class Owner {
   public:
    // Room for so many octets, until on_copied(). False: there is none.
    [[nodiscard]] virtual bool hold(std::size_t octets) = 0;
    // Nothing comes after this; another copy may begin.
    virtual void on_copied(Result result) = 0;

   protected:
    ~Owner() = default;
  };

  ItemCopy(const io::Loop& loop, Owner& owner) noexcept : loop_(loop), owner_(owner) {}

  // `key` as the ring hashes it; `patience`: for each of at most four answers. Both servers must
  // live until the end. The owner may be told before this returns.
  void start(MemcachedServer& from, MemcachedServer& to, std::string_view key,
             std::chrono::milliseconds patience);

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] const MemcachedServer* to() const noexcept { return to_; }

 private:
  enum class Step : std::uint8_t { read, add, look, forget };

  bool on_reply(const memcached::Reply& reply) override;
  void on_value(std::string_view octets, std::uint32_t left) override;
  void on_answered() override;
  void on_failed(CallFailure failure) override;

  void read_item(const memcached::Reply& reply);
  void ask(MemcachedServer& server, Step step, std::string_view verb, std::string_view flags);
  void add();
  void look_again();
  void forget_copy();
  [[nodiscard]] bool is_unchanged() const noexcept;
  void end(Result result);

  const io::Loop& loop_;
  Owner& owner_;
  MemcachedServer* from_ = nullptr;
  MemcachedServer* to_ = nullptr;
  std::chrono::milliseconds patience_{0};
  std::string key_, line_, value_;
  io::Milliseconds read_at_ = 0;
  std::uint64_t unique_ = 0;               // of the item that was read
  std::uint64_t copy_ = 0;                 // of what was added; 0: not known
  std::uint64_t unique_seen_ = 0;          // of the newest answer
  std::int64_t left_ = 0, left_seen_ = 0;  // seconds; -1: for ever
  std::uint32_t flags_ = 0;
  Step step_ = Step::read;
  memcached::ReplyKind kind_ = memcached::ReplyKind::end;
  bool fit_ = false;
};

}  // namespace clockwise::upstream
