// Who leaves when the store is full: S3-FIFO (Yang et al., "FIFO queues are all you need for cache
// eviction", SOSP 2023), counted in octets.
//
// What is new enters a small queue, a tenth of the room; most objects are never asked for again and
// leave by it soon. What was asked for meanwhile moves to the main queue, where each round costs
// one of its counted requests. A ghost remembers the hashes of what left the small queue: who comes
// back goes to the main queue at once. A scan so passes through the small queue alone, and an
// object as large as it needs a second request before it costs others their place.
//
// A hit only raises a counter, without a lock: touch() may run on any thread while the node is in;
// everything else belongs to the owner of the queues, one thread or one lock. Pure: no clock, no
// allocation per call once the ghost is built.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace clockwise::cache {

class Eviction {
 public:
  // One object, embedded in what holds it.
  class Node {
   public:
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // A request was answered with it. Any thread.
    void touch() noexcept {
      const std::uint8_t seen = requests_.load(std::memory_order_relaxed);
      if (seen < kMostCounted) requests_.store(seen + 1, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    [[nodiscard]] bool is_in() const noexcept { return queue_ != Queue::none; }

   private:
    friend class Eviction;
    // Neither side looks at the other when it is destroyed.
    using Hook = boost::intrusive::list_member_hook<
        boost::intrusive::link_mode<boost::intrusive::normal_link>>;
    enum class Queue : std::uint8_t { none, small, main };
    static constexpr std::uint8_t kMostCounted = 3;

    Hook hook_;
    std::uint64_t hash_ = 0;
    std::uint32_t size_ = 0;
    std::atomic<std::uint8_t> requests_{0};
    Queue queue_ = Queue::none;
  };

  // `capacity` in octets, all that the objects cost together; `ghosts` is how many hashes are
  // remembered: about as many as objects fit.
  Eviction(std::uint64_t capacity, std::size_t ghosts);

  // Takes the object in; the caller then makes room. `hash` of its key. REQUIRES: !node.is_in().
  void insert(Node& node, std::uint64_t hash, std::uint32_t size);
  // An object that grows while it fills, or shrinks. REQUIRES: node.is_in().
  void resize(Node& node, std::uint32_t size) noexcept;
  // It left for another reason (purged, replaced). REQUIRES: node.is_in().
  void remove(Node& node) noexcept;

  // The object that must leave, taken off already; null: all fit. Call until it is null.
  [[nodiscard]] Node* evict() { return used() > capacity_ ? next_out() : nullptr; }
  // The one that leaves next, taken off already, whether or not all fit; null: nothing is in.
  [[nodiscard]] Node* next_out();

  void set_capacity(std::uint64_t capacity) noexcept { capacity_ = capacity; }
  [[nodiscard]] std::uint64_t used() const noexcept { return small_.octets + main_.octets; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  // Of the ghost, which counts against the store's bound as well.
  [[nodiscard]] std::size_t memory() const noexcept;

 private:
  struct Fifo {
    using Member = boost::intrusive::member_hook<Node, Node::Hook, &Node::hook_>;

    boost::intrusive::list<Node, Member, boost::intrusive::constant_time_size<false>>
        nodes;  // the oldest first
    std::uint64_t octets = 0;
  };

  // The last hashes that left the small queue. A hash that is overwritten in the table is
  // forgotten early: that costs a hit, never a wrong answer.
  class Ghost {
   public:
    explicit Ghost(std::size_t most);
    void add(std::uint64_t hash) noexcept;
    [[nodiscard]] bool take(std::uint64_t hash) noexcept;
    // So many of the last ones count, as far as there is room for them.
    void remember(std::uint32_t hashes) noexcept { count_ = std::min(hashes, most_); }
    [[nodiscard]] std::size_t memory() const noexcept;

   private:
    struct Slot {
      std::uint32_t tag = 0;   // 0: empty
      std::uint32_t turn = 0;  // when it was added
    };
    static constexpr std::size_t kWays = 8;

    [[nodiscard]] Slot* bucket(std::uint64_t hash) noexcept;
    [[nodiscard]] bool is_old(const Slot& slot) const noexcept {
      return turn_ - slot.turn > count_;
    }

    std::vector<Slot> slots_;
    std::uint32_t most_, count_ = 0;
    std::uint32_t turn_ = 0;
  };

  void push(Fifo& fifo, Node::Queue queue, Node& node) noexcept;
  void take_off(Node& node) noexcept;
  [[nodiscard]] Fifo& queue_of(const Node& node) noexcept;
  [[nodiscard]] Node* evict_from_small();
  [[nodiscard]] Node* evict_from_main() noexcept;

  std::uint64_t capacity_;
  std::uint32_t nodes_ = 0;
  Fifo small_, main_;
  Ghost ghost_;
};

}  // namespace clockwise::cache
