// Who waits for a connection to a server: first come, first served.
//
// Intrusive, so that waiting allocates nothing and leaving from the middle costs nothing. One
// thread.
#pragma once

#include <cstdint>
#include <utility>

namespace clockwise::upstream {

class WaitQueue {
 public:
  // A place in the queue, embedded in whoever waits. Must be out of it when it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    [[nodiscard]] bool waiting() const noexcept { return waiting_; }

   private:
    friend class WaitQueue;
    Place* before_ = nullptr;
    Place* after_ = nullptr;
    bool waiting_ = false;
  };

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] Place& first() noexcept { return *first_; }  // REQUIRES: !empty()

  void join(Place& place) noexcept {
    place.before_ = last_;
    place.after_ = nullptr;
    (last_ != nullptr ? last_->after_ : first_) = &place;
    last_ = &place;
    place.waiting_ = true;
    ++size_;
  }

  void leave(Place& place) noexcept {
    (place.before_ != nullptr ? place.before_->after_ : first_) = place.after_;
    (place.after_ != nullptr ? place.after_->before_ : last_) = place.before_;
    place.waiting_ = false;
    --size_;
  }

 private:
  Place* first_ = nullptr;
  Place* last_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace clockwise::upstream
