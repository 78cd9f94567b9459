// Who waits for a connection to a server: first come, first served.
//
// Intrusive, so that waiting allocates nothing and leaving from the middle costs nothing. One
// thread.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

namespace clockwise::upstream {

class WaitQueue {
 public:
  // A place in the queue, embedded in whoever waits. Must be out of it when it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    [[nodiscard]] bool waiting() const noexcept { return hook_.is_linked(); }

   private:
    friend class WaitQueue;
    boost::intrusive::list_member_hook<> hook_;
  };

  [[nodiscard]] bool empty() const noexcept { return places_.empty(); }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(places_.size());
  }
  [[nodiscard]] Place& first() noexcept { return places_.front(); }  // REQUIRES: !empty()

  void join(Place& place) noexcept { places_.push_back(place); }
  void leave(Place& place) noexcept { places_.erase(places_.iterator_to(place)); }

 private:
  using Hook =
      boost::intrusive::member_hook<Place, boost::intrusive::list_member_hook<>, &Place::hook_>;
  boost::intrusive::list<Place, Hook> places_;
};

}  // namespace clockwise::upstream
