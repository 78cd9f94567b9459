#include "runtime/checker.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "runtime/log.h"
#include "upstream/probe.h"

namespace clockwise::runtime {

namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using upstream::Routing;

// How late an ejection may end.
constexpr auto kTick = 50ms;
// Between the first checks of two servers after a start, so that many do not come at once.
constexpr auto kFirstChecksApart = 10ms;

using Seconds = std::chrono::duration<double>;

void tell(const upstream::HealthChange& change) {
  if (change.good)
    log::info("pool {}: {}", change.pool, change.text);
  else
    log::warn("pool {}: {}", change.pool, change.text);
}

void tell_changes(upstream::HealthBoard& board) {
  for (const upstream::HealthChange& change : board.take_changes()) tell(change);
}

// One server that is checked again and again.
class Checked {
 public:
  Checked(asio::io_context& io, std::minstd_rand& random) : io_(io), random_(random), timer_(io) {}

  ~Checked() { stop(); }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  // From now on as `pool` says; the first check comes after `first`, unless nothing has changed.
  void configure(std::shared_ptr<const upstream::Pool> pool, std::size_t index,
                 std::chrono::nanoseconds first) {
    const bool same = pool_ && pool_->config.health == pool->config.health;
    pool_ = std::move(pool);
    index_ = index;
    if (same) return;
    stop();
    wait(first);
  }

  void stop() {
    alive_ = std::make_shared<int>();
    timer_.cancel();
    if (probe_) probe_->cancel();
    probe_.reset();
  }

 private:
  void wait(std::chrono::nanoseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& ec) {
      if (!ec && !alive.expired()) check();
    });
  }

  void check() {
    const config::Health& rules = *pool_->config.health;
    std::uniform_real_distribution<double> stray(1 - rules.jitter, 1 + rules.jitter);
    next_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                   Seconds(rules.interval) * stray(random_));
    probe_ = std::make_shared<upstream::Probe>(
        io_, pool_->servers[index_], rules, pool_->config.protocol,
        [this](bool passed, std::string why) { done(passed, std::move(why)); });
    probe_->start();
  }

  void done(bool passed, std::string why) {
    probe_.reset();
    pool_->health->checked(*pool_->servers[index_].health, passed, std::move(why));
    tell_changes(*pool_->health);
    wait(std::max<std::chrono::nanoseconds>(next_ - std::chrono::steady_clock::now(), 0ns));
  }

  asio::io_context& io_;
  std::minstd_rand& random_;
  // A wait that is over may be queued when this is stopped.
  std::shared_ptr<int> alive_;
  asio::steady_timer timer_;
  std::shared_ptr<const upstream::Pool> pool_;
  std::size_t index_ = 0;
  std::shared_ptr<upstream::Probe> probe_;  // under way
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace

class Checker::Impl {
 public:
  Impl() : thread_([this] { run(); }) {}
  ~Impl() {
    io_.stop();
    thread_.join();
  }

  void adopt(std::shared_ptr<const Routing> routing) {
    for (const auto& pool : routing->pools) pool->health->configure(*pool);
    asio::post(io_, [this, routing = std::move(routing)]() mutable {
      routing_ = std::move(routing);
      check_servers();
      tick();
    });
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "health");
    io_.run();
  }

  // Those of the snapshot whose pool asks for it; a server that is still there goes on as it was.
  void check_servers() {
    std::map<const upstream::HealthMark*, std::unique_ptr<Checked>> before;
    before.swap(checked_);
    for (const auto& pool : routing_->pools) {
      if (!pool->config.health) continue;
      const auto apart = std::min<std::chrono::nanoseconds>(
          kFirstChecksApart, pool->config.health->interval / pool->servers.size());
      for (std::size_t i = 0; i < pool->servers.size(); ++i) {
        const upstream::Server& server = pool->servers[i];
        if (server.config.state == config::ServerState::down) continue;
        auto& checked = checked_[server.health.get()];
        checked = std::move(before[server.health.get()]);
        if (!checked) checked = std::make_unique<Checked>(io_, random_);
        checked->configure(pool, i, apart * i);
      }
    }
  }

  void tick() {
    bool again = false;
    for (const auto& pool : routing_->pools) {
      pool->health->pass_time();
      tell_changes(*pool->health);
      again |=
          pool->config.outlier.has_value() || pool->config.protocol == config::Protocol::memcached;
    }
    if (!again) return;
    timer_.expires_after(kTick);
    timer_.async_wait([this](const boost::system::error_code& replaced) {
      if (!replaced) tick();
    });
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::steady_timer timer_{io_};
  std::minstd_rand random_{std::random_device{}()};
  std::shared_ptr<const Routing> routing_;
  std::map<const upstream::HealthMark*, std::unique_ptr<Checked>> checked_;
  std::thread thread_;
};

Checker::Checker() : impl_(std::make_unique<Impl>()) {}
Checker::~Checker() = default;
void Checker::adopt(std::shared_ptr<const Routing> routing) { impl_->adopt(std::move(routing)); }

}  // namespace clockwise::runtime
