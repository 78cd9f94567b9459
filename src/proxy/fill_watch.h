// One end of a fetch that fills the store, as an exchange on an event loop sees it: what another
// thread has to tell is told on the loop of the exchange, as long as that wants to hear it.
#pragma once

#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "cache/fill.h"
#include "cache/store.h"
#include "io/loop.h"

namespace clockwise::proxy {

// Of one that waits, by follow(), or of the one that fetches, by fetch().
class FillWatch final : public cache::Fill::Follower,
                        public cache::Fill::Fetcher,
                        public std::enable_shared_from_this<FillWatch> {
 public:
  class Owner {
   public:
    virtual void on_fill() = 0;  // what it waited for has come, or it is nudged

   protected:
    ~Owner() = default;
  };

  FillWatch(io::Loop& loop, Owner& owner, std::shared_ptr<cache::Store> store,
            std::shared_ptr<cache::Fill> fill) noexcept
      : loop_(loop), owner_(&owner), store_(std::move(store)), fill_(std::move(fill)) {}

  [[nodiscard]] cache::Fill& fill() noexcept { return *fill_; }
  [[nodiscard]] const std::shared_ptr<cache::Fill>& shared() const noexcept { return fill_; }
  [[nodiscard]] bool follow(std::size_t most) { return fill_->follow(*this, most); }
  [[nodiscard]] bool wait(cache::Fill::State state, std::uint64_t seen) {
    return fill_->wait(*this, state, seen);
  }
  void fetch() noexcept {
    fetches_ = true;
    fill_->fetched_by(this);
  }
  void leave() noexcept {
    if (fetches_)
      fill_->fetched_by(nullptr);
    else
      fill_->unfollow(*this);
    owner_ = nullptr;
  }

 private:
  void wake() noexcept override { tell(); }
  void nudge() noexcept override { tell(); }
  void tell() noexcept {
    boost::asio::post(loop_.io, [self = shared_from_this()] {
      if (self->owner_ != nullptr) self->owner_->on_fill();
    });
  }

  io::Loop& loop_;
  Owner* owner_;
  const std::shared_ptr<cache::Store> store_;  // outlives the fill
  const std::shared_ptr<cache::Fill> fill_;
  bool fetches_ = false;
};

}  // namespace clockwise::proxy
