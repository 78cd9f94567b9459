// Who of several proxies fetches an item that none of them has found in the pool.
//
// A lock stands for as long as one of them fetches: an item beside the one that is missing, on the
// same server, since whatever stood in its place would be a value to other programs. Who finds it
// taken looks again at rising intervals, until the item is there, the lock is free, or the time
// that the pool may cost is over. Whatever goes wrong means that nobody is waited for.
//
// One thread. May be destroyed at any time, also by what it says to its owner; a lock that it has
// goes with it, and one whose proxy has died a little later than `budget`.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "proxy/context.h"
#include "upstream/memcached_server.h"

namespace clockwise::proxy {

class ItemLease final : upstream::MemcachedCall, public std::enable_shared_from_this<ItemLease> {
 public:
  enum class Result : std::uint8_t {
    won,    // this proxy fetches: it has the lock, which goes with this object
    found,  // another one has fetched it: it stands in the pool
    none,   // no lock, or no time left to wait for one: this proxy fetches as well
  };

  class Owner {
   public:
    // Said once, and never from within start().
    virtual void on_lease(Result result) = 0;

   protected:
    ~Owner() = default;
  };

  // For the item of `key`, which `server` said it has not. `until_ns`: of the loop's clock, when
  // the time is over. REQUIRES: the view is in use (PoolView::users) as long as this lives.
  ItemLease(Context& context, const PoolView& view, upstream::MemcachedServer& server,
            std::string key, std::uint64_t until_ns);
  ~ItemLease() override;

  // False: there is no time, or the server cannot be asked; nothing is said.
  [[nodiscard]] bool start(Owner& owner);

 private:
  enum class Step : std::uint8_t { locking, looking, waiting, over };

  bool on_reply(const memcached::Reply& reply) override;
  void on_value(std::string_view, std::uint32_t) override {}
  void on_answered() override;
  void on_failed(upstream::CallFailure failure) override;

  [[nodiscard]] bool lock();
  void look();
  void locked();
  void looked();
  void wait();
  void set_timer(std::uint64_t at_ns);
  void on_time();
  void end(Result result);
  void release();

  Context& context_;
  const PoolView& view_;
  upstream::MemcachedServer& server_;
  const std::string key_, lock_;
  const std::uint64_t until_ns_;
  Owner* owner_ = nullptr;
  boost::asio::steady_timer timer_;
  Step step_ = Step::over;
  memcached::ReplyKind kind_ = memcached::ReplyKind::end;
  bool held_ = false;                // the lock is ours
  std::uint64_t held_until_ns_ = 0;  // after that it may be another's
  std::uint64_t interval_ns_;        // between two looks
};

}  // namespace clockwise::proxy
