// What an exchange asks a memcached server for, and what it knows of the item so far. One request
// at a time; recycled with the exchange.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memcached/command.h"
#include "proxy/replica_write.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

class ItemCall final : public upstream::MemcachedCall {
 public:
  // The exchange; each call may destroy the request, but not this object.
  class Owner {
   public:
    [[nodiscard]] virtual bool on_item_reply(const memcached::Reply& reply) = 0;
    virtual void on_item_value(std::string_view octets, std::uint32_t left) = 0;
    virtual void on_item_answered() = 0;
    virtual void on_item_failed(upstream::CallFailure failure) = 0;

   protected:
    ~Owner() = default;
  };

  explicit ItemCall(Owner& owner) noexcept : owner_(owner) {}

 private:
  bool on_reply(const memcached::Reply& reply) override { return owner_.on_item_reply(reply); }
  void on_value(std::string_view octets, std::uint32_t left) override {
    owner_.on_item_value(octets, left);
  }
  void on_answered() override { owner_.on_item_answered(); }
  void on_failed(upstream::CallFailure failure) override { owner_.on_item_failed(failure); }

  Owner& owner_;
};

// Whether an item is there, asked right before it is written. Without an answer it counts as new.
class ItemCheck final : public upstream::MemcachedCall {
 public:
  bool there = false;

 private:
  bool on_reply(const memcached::Reply& reply) override {
    there = reply.kind == memcached::ReplyKind::meta_done;
    return there || reply.kind == memcached::ReplyKind::end || memcached::is_error(reply.kind);
  }
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override {}
  void on_failed(upstream::CallFailure) override {}
};

struct Item {
  // `all_held`: Context::memcached_held.
  Item(ItemCall::Owner& owner, std::size_t& all_held) noexcept : call(owner), all(all_held) {}

  ItemCall call;
  ItemCheck check;
  ReplicaWrite* write = nullptr;  // where several servers hold the item; null: none is under way
  upstream::MemcachedServer* server = nullptr;
  ring::ServerIndex index = 0;  // the same
  bool stands_in = false;       // for the owner
  std::uint32_t place = 0;      // of the server among the owners
  std::uint32_t lacking = 0;    // bit n: the owner at place n does not have it
  memcached::Verb verb = memcached::Verb::get;
  std::string key;
  std::string value;                   // that came, or is to be stored
  std::size_t ready = 0, sent = 0;     // of a value that is relayed: may go out, and has
  std::string unpacked;                // of gzip
  std::vector<std::uint64_t> uniques;  // that a write may replace; tried one after another
  std::int64_t exptime = 0;
  memcached::ReplyKind kind = memcached::ReplyKind::end;
  std::uint32_t flags = 0, length = 0;
  std::uint64_t unique = 0;
  std::uint64_t late_ns = 0;  // when the pool may cost no more time
  bool found = false;
  bool missed = false;  // the server has said that it has none
  bool again = false;   // asked for once more, since another proxy has stored it
  bool begun = false;   // its answer goes out while the value still comes
  bool whole = false;   // nothing more is to be sent
  bool must_exist = false, must_be_new = false;
  bool too_large = false, out_of_memory = false;  // as the server said
  bool crowded = false;                           // there is no room for its value
  std::size_t& all;
  std::size_t held = 0;  // of `all`

  // What costs no more than any other request does: it is not counted, and waits until it is whole.
  static constexpr std::size_t kSmall = 64 * 1024;

  // Room for so many octets in all. False: it would be too much together with what others hold; who
  // is alone has what it needs.
  [[nodiscard]] bool hold(std::uint64_t octets, std::uint64_t most) noexcept {
    if (octets <= std::max(held, kSmall)) return true;
    const std::size_t others = all - held;
    if (others > 0 && others + octets > most) return false;
    held = octets;
    all = others + held;
    return true;
  }
  // How much more than `held` there is room for.
  [[nodiscard]] std::uint64_t room(std::uint64_t most) const noexcept {
    return all == held ? UINT64_MAX : most - std::min<std::uint64_t>(all, most);
  }

  // What a server says that cannot store it.
  void note_refusal(std::string_view line) noexcept {
    too_large = line.find("too large") != std::string_view::npos;
    out_of_memory = line.find("out of memory storing") != std::string_view::npos;
  }

  void forget() noexcept {
    call.forget();
    check.forget();
    if (write != nullptr) write->abandon();
    write = nullptr;
    place = lacking = 0;
    constexpr std::size_t kKept = 64 * 1024;
    for (std::string* text : {&value, &unpacked}) {
      if (text->capacity() > kKept) std::string().swap(*text);
      text->clear();
    }
    uniques.clear();
    all -= std::exchange(held, 0);
    ready = sent = 0;
    server = nullptr;
    stands_in = crowded = false;
    found = missed = again = begun = whole = must_exist = must_be_new = too_large = out_of_memory =
        false;
    check.there = false;
  }
};

}  // namespace clockwise::proxy
