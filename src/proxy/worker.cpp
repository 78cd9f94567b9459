#include "proxy/worker.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "cache/store.h"
#include "proxy/context.h"
#include "proxy/exchange.h"
#include "proxy/listener.h"
#include "proxy/session.h"
#include "proxy/shared_store.h"

namespace clockwise::proxy {

namespace asio = boost::asio;
using upstream::ServerConnections;

namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

class Worker::Impl {
 public:
  Impl(std::size_t index, metrics::WorkerCells& cells, std::shared_ptr<const Admission> admission)
      : cells_(cells),
        busy_before_(cells.busy_ns.get()),
        context_(index, std::move(admission), random_seed()),
        work_(context_.loop.io.get_executor()) {
    context_.loop.free_descriptors = [this] { return free_descriptors(); };
  }

  ~Impl() { stop(); }

  Result<void> open(const WorkerState& state) { return take_over(state); }

  void start() {
    context_.loop.start_ticking([this](std::uint64_t delay_ns) { on_tick(delay_ns); });
    for (auto& listener : listeners_) listener->start_accepting();
    started_ = true;
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), ("worker-" + std::to_string(context_.worker)).c_str());
      // A pause of the loop (io/gather.h) is not to be 50 us longer than asked for.
      ::prctl(PR_SET_TIMERSLACK, 5'000UL);
      context_.loop.io.run();
    });
  }

  void adopt(WorkerState state, std::function<void(Result<void>)> adopted) {
    asio::post(context_.loop.io, [this, state = std::move(state), adopted = std::move(adopted)] {
      adopted(take_over(state));
    });
  }

  void drain(std::function<void()> drained) {
    asio::post(context_.loop.io, [this, drained = std::move(drained)]() mutable {
      for (auto& listener : listeners_) listener->drain();
      drained_ = std::move(drained);
      tell_when_drained();
    });
  }

  void stop() {
    if (!thread_.joinable()) return;
    asio::post(context_.loop.io, [this] {
      for (auto& listener : listeners_) listener->drop_all();
      for (auto& listener : leaving_) listener->drop_all();
      for (auto& [key, servers] : servers_) servers->retire();
      for (auto& [key, server] : memcached_) server->drop_all();
      for (auto& [pool, memory] : memories_) memory->hedge_clock.stop();
      for (auto& [cache, store] : shared_) store->stop();
      context_.loop.stop_ticking();
      work_.reset();
      // What is left are completions of closed sockets.
    });
    thread_.join();
  }

 private:
  // By the name of the pool, and of the cache that a route gives it in the place of its own; empty:
  // none.
  using ViewKey = std::pair<std::string, std::optional<std::string>>;
  using Views = std::map<ViewKey, PoolView*>;
  using ServerKey = std::tuple<std::string, std::string, std::string>;  // pool, name, address

  Result<void> take_over(const WorkerState& state) {
    Views views;
    std::vector<std::unique_ptr<PoolView>> next;
    const auto add = [&](const auto& pool, std::optional<std::string> of_route,
                         const upstream::CacheUse& use) {
      next.push_back(make_view(pool, use));
      views[{pool->config.name, std::move(of_route)}] = next.back().get();
    };
    for (const auto& pool : state.routing->pools) {
      add(pool, std::nullopt, pool->cache);
      if (pool->cache.cache && has_routes(state)) add(pool, std::string(), {});
      for (const auto& use : pool->route_caches) add(pool, use.counters->cache, use);
    }
    for (const auto& view : next)
      if (const auto& name = view->pool->config.fallback)
        view->fallback = views.at({*name, std::nullopt});
    share(next, views);
    context_.log = state.log;
    auto result = take_over_listeners(state, views);
    for (auto& view : views_) old_views_.push_back(std::move(view));
    views_ = std::move(next);
    retire_servers();
    tidy();
    return result;
  }

  static bool has_routes(const WorkerState& state) {
    return std::ranges::any_of(state.listeners,
                               [](const auto& spec) { return !spec->config.routes.empty(); });
  }

  std::unique_ptr<PoolView> make_view(const std::shared_ptr<const upstream::Pool>& pool,
                                      const upstream::CacheUse& use) {
    auto view = std::make_unique<PoolView>();
    view->pool = pool;
    view->cells = &pool->counters->cells.at(context_.worker);
    view->cache = use;
    if (use.cache) view->cache_cells = &use.counters->cells.at(context_.worker);
    view->recent = &pool->recent->by_worker.at(context_.worker);
    view->memcached_cells = &pool->counters->memcached.at(context_.worker);
    view->memory = &memory_of(pool->config.name);
    if (pool->watch) {
      const auto left = pool->watch->until - std::chrono::steady_clock::now();
      const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
      if (left_ms > 0) {
        view->watch_until =
            context_.loop.refresh() / 1'000'000 + static_cast<io::Milliseconds>(left_ms);
      }
    }
    for (const upstream::Server& server : pool->servers) {
      if (pool->config.protocol == config::Protocol::memcached) {
        view->memcached.push_back(&memcached_at(pool, server));
        view->memcached.back()->hold();
        continue;
      }
      ServerConnections& connections = connections_to(*pool, server);
      connections.hold();
      view->servers.push_back(&connections);
    }
    return view;
  }

  // Caches whose answers other proxies share, each with the newest view of the pool that has them.
  void share(const std::vector<std::unique_ptr<PoolView>>& next, const Views& views) {
    std::map<std::string, PoolView*> users;
    for (const auto& view : next) {
      if (!view->cache.cache || !view->cache.cache->config.pool) continue;
      const std::string& cache = view->cache.cache->config.name;
      auto& store = shared_[cache];
      if (!store) store = std::make_unique<SharedStore>(context_);
      view->shared = store.get();
      users[cache] = view.get();
    }
    for (auto& [cache, store] : shared_) {
      const auto user = users.find(cache);
      if (user == users.end()) {
        store->configure(nullptr, nullptr);
        continue;
      }
      const upstream::CacheUse& use = user->second->cache;
      store->configure(&use, views.at({*use.cache->config.pool, std::nullopt}));
    }
  }

  PoolMemory& memory_of(const std::string& pool) {
    auto& memory = memories_[pool];
    if (!memory) memory = std::make_unique<PoolMemory>(context_.loop);
    return *memory;
  }

  // A server that keeps its name and address keeps its connections.
  ServerConnections& connections_to(const upstream::Pool& pool, const upstream::Server& server) {
    auto& slot = servers_[{pool.config.name, server.config.name, server.config.address.text}];
    if (!slot) {
      slot = std::make_unique<ServerConnections>(context_.loop, server.backend, context_.worker);
    }
    slot->configure(server, pool.config);
    return *slot;
  }

  upstream::MemcachedServer& memcached_at(const std::shared_ptr<const upstream::Pool>& pool,
                                          const upstream::Server& server) {
    auto& slot = memcached_[{pool->config.name, server.config.name, server.config.address.text}];
    if (!slot) {
      slot = std::make_unique<upstream::MemcachedServer>(context_.loop, server.backend,
                                                         context_.worker);
    }
    slot->configure(pool, server);
    return *slot;
  }

  Result<void> take_over_listeners(const WorkerState& state, const Views& views) {
    Result<void> result;
    std::vector<std::unique_ptr<Listener>> next;
    for (const auto& spec : state.listeners) {
      PoolView* pool = views.at({spec->config.pool, std::nullopt});
      auto known = std::ranges::find_if(listeners_, [&](const auto& listener) {
        return listener && listener->config().name == spec->config.name &&
               listener->config().address == spec->config.address;
      });
      if (known != listeners_.end()) {
        next.push_back(std::move(*known));
        next.back()->configure(spec, pool, routed(spec->config, views, pool));
        continue;
      }
      auto opened = std::make_unique<Listener>(context_, spec);
      const auto open = opened->open();
      if (!open) {
        if (result) result = open.error();
        continue;
      }
      opened->configure(spec, pool, routed(spec->config, views, pool));
      if (started_) opened->start_accepting();
      next.push_back(std::move(opened));
    }
    for (auto& listener : listeners_) {
      if (!listener) continue;
      listener->drain();
      leaving_.push_back(std::move(listener));
    }
    listeners_ = std::move(next);
    for (auto& listener : leaving_) give_stand_in(*listener, views);
    return result;
  }

  // The connections of a listener that left end with their next answer. Until then, through however
  // many changes, they are served by the pool that stands in for the one they knew.
  static void give_stand_in(Listener& listener, const Views& views) {
    const auto same = views.find({listener.config().pool, std::nullopt});
    PoolView* pool = same != views.end() ? same->second
                     : views.empty()     ? nullptr
                                         : views.begin()->second;
    listener.configure(std::make_shared<const ListenerSpec>(listener.spec()), pool,
                       routed(listener.config(), views, pool));
  }

  // The pools of its routes; `stand_in` for one that is gone.
  static std::vector<PoolView*> routed(const config::Listener& config, const Views& views,
                                       PoolView* stand_in) {
    std::vector<PoolView*> pools;
    for (const config::Route& route : config.routes) {
      auto found = views.find({route.pool, route.cache});
      if (found == views.end()) found = views.find({route.pool, std::nullopt});
      pools.push_back(found == views.end() ? stand_in : found->second);
    }
    return pools;
  }

  // Connections to servers that no view of the newest snapshot names.
  void retire_servers() {
    for (auto& [key, servers] : servers_) {
      const bool used = std::ranges::any_of(views_, [&](const auto& view) {
        return std::ranges::find(view->servers, servers.get()) != view->servers.end();
      });
      if (!used) servers->retire();
    }
    for (auto& [key, server] : memcached_) {
      const bool used = std::ranges::any_of(views_, [&](const auto& view) {
        return std::ranges::find(view->memcached, server.get()) != view->memcached.end();
      });
      if (!used) server->retire();
    }
  }

  // Frees what the last request has left.
  void tidy() {
    std::erase_if(old_views_, [](const auto& view) {
      if (view->users > 0) return false;
      for (ServerConnections* servers : view->servers) servers->let_go();
      for (upstream::MemcachedServer* server : view->memcached) server->let_go();
      return true;
    });
    std::erase_if(servers_, [](const auto& entry) { return entry.second->disposable(); });
    std::erase_if(memcached_, [](const auto& entry) { return entry.second->disposable(); });
    std::erase_if(leaving_, [](const auto& listener) { return listener->sessions() == 0; });
  }

  // Descriptors have run out: clients without a request make room, and where there are none,
  // connections to servers that nobody uses.
  bool free_descriptors() {
    constexpr std::size_t kAtOnce = 16;
    std::size_t closed = 0;
    for (auto& listener : listeners_) closed += listener->close_idle(kAtOnce);
    if (closed > 0) return true;
    for (auto& [key, servers] : servers_) closed += servers->close_idle();
    for (auto& [key, server] : memcached_) closed += server->close_idle();
    return closed > 0;
  }

  void on_tick(std::uint64_t delay_ns) {
    cells_.loop_delay.observe(delay_ns);
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    const auto busy = busy_before_ + static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
                      static_cast<std::uint64_t>(used.tv_nsec);
    cells_.busy_ns.add(busy - cells_.busy_ns.get());
    for (auto& [key, servers] : servers_) servers->on_tick();
    for (auto& [key, server] : memcached_) server->on_tick();
    for (auto& [cache, store] : shared_) store->on_tick();
    context_.resume_memcached();
    for (const auto& view : views_) see_largest_item(*view);
    for (const auto& view : views_)
      if (view->cache.cache)
        view->cache.cache->store->sweep(static_cast<std::int64_t>(context_.loop.now()));
    if (!old_views_.empty() || !leaving_.empty()) tidy();
    tell_when_drained();
  }

  static void see_largest_item(PoolView& view) {
    if (view.memcached.empty()) return;
    const auto smallest = std::ranges::min_element(
        view.memcached, {}, [](const auto* server) { return server->largest_item(); });
    view.largest_item = (*smallest)->largest_item();
  }

  void tell_when_drained() {
    if (!drained_) return;
    const auto empty = [](const auto& listener) { return listener->sessions() == 0; };
    const auto told = [](const auto& of_cache) { return of_cache.second->purges_told(); };
    if (!std::ranges::all_of(listeners_, empty) || !std::ranges::all_of(leaving_, empty)) return;
    if (!std::ranges::all_of(shared_, told)) return;
    std::exchange(drained_, nullptr)();
  }

  metrics::WorkerCells& cells_;
  const std::uint64_t busy_before_;  // of an earlier worker with this index
  Context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::map<ServerKey, std::unique_ptr<ServerConnections>> servers_;
  std::map<ServerKey, std::unique_ptr<upstream::MemcachedServer>> memcached_;
  std::map<std::string, std::unique_ptr<PoolMemory>> memories_;
  std::map<std::string, std::unique_ptr<SharedStore>> shared_;  // by the cache; they never go
  std::vector<std::unique_ptr<PoolView>> views_, old_views_;
  std::vector<std::unique_ptr<Listener>> listeners_, leaving_;
  std::function<void()> drained_;
  std::thread thread_;
  bool started_ = false;
};

Worker::Worker(std::size_t index, metrics::WorkerCells& cells,
               std::shared_ptr<const Admission> admission)
    : impl_(std::make_unique<Impl>(index, cells, std::move(admission))) {}
Worker::~Worker() = default;
Result<void> Worker::open(const WorkerState& state) { return impl_->open(state); }
void Worker::start() { impl_->start(); }
void Worker::adopt(WorkerState state, std::function<void(Result<void>)> adopted) {
  impl_->adopt(std::move(state), std::move(adopted));
}
void Worker::drain(std::function<void()> drained) { impl_->drain(std::move(drained)); }
void Worker::stop() { impl_->stop(); }

}  // namespace clockwise::proxy
