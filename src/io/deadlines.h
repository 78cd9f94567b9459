// Every deadline of one event loop, in one wheel with a coarse clock.
//
// A timer for each operation costs more than all the rest of a request (docs/adr/0001). Here a
// deadline is a number in the connection: moving it later, which is what every request does, is one
// store. Only a deadline that comes nearer than the connection's slot moves it to another slot. The
// loop turns the wheel every kTick; a deadline fires at most one tick late, never early. One
// thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace clockwise::io {

using Milliseconds = std::uint64_t;  // on the loop's steady clock

class Deadlines {
 public:
  static constexpr Milliseconds kTick = 50;
  static constexpr Milliseconds kNever = ~Milliseconds{0};

  struct Links {
    Links* after = nullptr;
    Links* before = nullptr;
  };

  // One per connection, embedded; unlinked by its destructor.
  class Node : Links {
   public:
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() { unlink(); }
    virtual void on_deadline() = 0;

   private:
    friend class Deadlines;
    void unlink() noexcept {
      if (after == nullptr) return;
      before->after = after;
      after->before = before;
      after = before = nullptr;
    }
    [[nodiscard]] bool linked() const noexcept { return after != nullptr; }

    Milliseconds deadline_ = kNever;
    Milliseconds slot_time_ = 0;  // when the slot it stands in is looked at
  };

  Deadlines() {
    for (Links& slot : slots_) slot.after = slot.before = &slot;
  }

  void set(Node& node, Milliseconds deadline) noexcept {
    node.deadline_ = deadline;
    if (node.linked() && node.slot_time_ <= deadline) return;  // looked at in time as it is
    if (deadline == kNever && !node.linked()) return;
    link(node);
  }
  void clear(Node& node) noexcept { node.deadline_ = kNever; }  // stays linked: see above

  // Fires what is due at `now`. A node may be destroyed or set again by its own on_deadline() or by
  // another's.
  void advance(Milliseconds now) {
    while (turned_ + kTick <= now) {
      turned_ += kTick;
      turn_slot(slots_[(turned_ / kTick) % kSlots]);
    }
  }
  // The wheel starts at the loop's time, not at 0. REQUIRES: nothing set yet.
  void start(Milliseconds now) noexcept { turned_ = now - now % kTick; }

 private:
  static constexpr std::size_t kSlots =
      1024;  // 51 s; later deadlines are looked at again on the way

  void link(Node& node) noexcept {
    node.unlink();
    const Milliseconds farthest = turned_ + (kSlots - 1) * kTick;
    Milliseconds at = node.deadline_ < farthest ? node.deadline_ : farthest;
    at = (at + kTick - 1) / kTick * kTick;
    if (at <= turned_) at = turned_ + kTick;
    node.slot_time_ = at;
    Links& slot = slots_[(at / kTick) % kSlots];
    node.before = slot.before;
    node.after = &slot;
    slot.before->after = &node;
    slot.before = &node;
  }

  void turn_slot(Links& slot) {
    // Taken off as a whole first: a node that is set again while we fire lands in a later slot.
    if (slot.after == &slot) return;
    Links due = slot;
    due.after->before = &due;
    due.before->after = &due;
    slot.after = slot.before = &slot;
    while (due.after != &due) {
      Node& node = static_cast<Node&>(*due.after);
      node.unlink();
      if (node.deadline_ <= turned_) {
        node.deadline_ = kNever;
        node.on_deadline();
      } else if (node.deadline_ != kNever) {
        link(node);
      }
    }
  }

  std::array<Links, kSlots> slots_;
  Milliseconds turned_ = 0;
};

}  // namespace clockwise::io
