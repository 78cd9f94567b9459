// One fetch from the origin that fills the store, and those who wait for it.
//
// One thread fetches; any number on any thread follow: they get the first octet as soon as it is
// there, and read the body from the object while it grows. What the answer turns out to be decides
// how they go on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/object.h"
#include "cache/purge.h"
#include "cache/vary.h"

namespace clockwise::cache {

class Fill;
using Fills = std::multimap<std::uint64_t, std::shared_ptr<Fill>>;  // by the hash of the key

class Fill {
 public:
  enum class State : std::uint8_t {
    waiting,    // no head yet
    streaming,  // object() can be read, and grows
    done,       // object() is whole
    passed,     // the answer cannot be shared: each goes its own way
    failed,     // no answer: failure() says why
    cut,        // the answer broke off; what was read of it is not whole
  };

  // Someone who waits. wake() comes from another thread as well, under the lock of the fill: it may
  // only post.
  class Follower {
   public:
    virtual void wake() noexcept = 0;

   protected:
    virtual ~Follower() = default;

   private:
    friend class Fill;
    bool waits_ = false;
    std::uint64_t seen_ = 0;
  };

  // The one who fetches. nudge() comes when the last follower has left, and when one has read on
  // after pause(); from any thread, under the lock of the fill: it may only post.
  class Fetcher {
   public:
    virtual void nudge() noexcept = 0;

   protected:
    ~Fetcher() = default;
  };

  // What the client is told when there is no answer; all text is static.
  struct Failure {
    std::uint16_t status = 502;
    std::string_view proxy_status, text;
  };

  static constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

  Fill(std::uint64_t hash, std::string_view key, std::uint32_t generation)
      : hash_(hash), key_(key), generation_(generation) {}
  Fill(const Fill&) = delete;
  Fill& operator=(const Fill&) = delete;

  // --- for those who follow ---
  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] ObjectRef object() const;
  [[nodiscard]] Failure failure() const;  // of State::failed
  // Octets of the body where they are known, from State::streaming on.
  [[nodiscard]] std::uint64_t length() const noexcept {
    return length_.load(std::memory_order_acquire);
  }
  // The origin has confirmed the object rather than sent it.
  [[nodiscard]] bool revalidated() const noexcept {
    return revalidated_.load(std::memory_order_acquire);
  }
  // The origin was not asked: another store had it.
  [[nodiscard]] bool found() const noexcept { return found_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  // An answer that is stale, and that another store had; null: none so far.
  [[nodiscard]] ObjectRef stale() const;

  // Counts as one who wants it. False: `most` do already, or it cannot be read from its beginning
  // any more.
  [[nodiscard]] bool follow(Follower& follower, std::size_t most);
  // One wake() to come, once the state is another than `state` or more than `seen` octets are
  // there. False, and none comes: that is so already. Whoever waits has left behind what stands
  // before `seen`, for good: of an answer that passes through it may be gone.
  [[nodiscard]] bool wait(Follower& follower, State state, std::uint64_t seen);
  void unfollow(Follower& follower) noexcept;  // no wake() comes after this

  // --- for the one who fetches ---
  void fetched_by(Fetcher* fetcher) noexcept;  // null: no nudge() comes after this
  [[nodiscard]] std::size_t followers() const;
  // Once the store has no room for what is still to come, the rest only passes through: so much of
  // it may be ahead of the slowest reader. False: wait for a nudge().
  [[nodiscard]] bool may_go_on();
  static constexpr std::uint64_t kWindow = 512ULL * 1024;

 private:
  friend class Shard;
  friend class Store;

  void become(State state) noexcept;
  void offer(ObjectRef stale);
  void grown() noexcept;
  [[nodiscard]] std::uint64_t slowest() const noexcept;  // REQUIRES: mutex_ is held

  const std::uint64_t hash_;
  const std::string key_;
  const std::uint32_t generation_;

  std::atomic<State> state_{State::waiting};
  std::atomic<std::uint64_t> length_{kUnknown};
  std::atomic<bool> revalidated_{false}, found_{false};

  mutable std::mutex mutex_;  // the rest, but for what is marked
  ObjectRef object_, stale_;
  Failure failure_;
  std::vector<Follower*> followers_;
  Fetcher* fetcher_ = nullptr;
  bool paused_ = false;
  bool passing_ = false;  // no new follower can begin

  // Under the lock of the shard.
  std::optional<Fills::iterator> place_;  // among those that can be found
  std::vector<Selector> selectors_;       // that it is for, as far as they are known
  bool joinable_ = true;
  bool beside_ = false;            // of a fetch that goes on: nobody ever joins it
  bool doomed_ = false;            // purged or invalidated meanwhile: not kept
  bool softened_ = false;          // purged softly meanwhile: stale from the start
  const Object* begun_ = nullptr;  // the answer, once its head is here
  std::vector<PurgeRule> rules_;   // purges of tags, until the head tells the tags

  // Of the thread that fetches.
  Extent* last_ = nullptr;     // of the body; null: in the inline part
  std::uint64_t room_ = 0;     // in that piece
  std::uint64_t cost_ = 0;     // of all pieces, as the arena counts
  std::uint64_t trimmed_ = 0;  // so many octets after the inline part are gone already
};

}  // namespace clockwise::cache
