#include "upstream/directory.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "cache/store.h"

namespace clockwise::upstream {
namespace {

using namespace std::chrono_literals;
using PoolServers = std::map<std::string, std::vector<std::string>>;

// A directory with a clock that only the test moves.
class DirectoryTest : public testing::Test {
 protected:
  std::chrono::steady_clock::time_point now{};
  Directory directory{2, WallClock::time_point{}, [this] { return now; }};

  void publish(const PoolServers& pools, const std::vector<std::string>& listeners = {}) {
    auto routing = std::make_shared<Routing>();
    auto config = std::make_shared<config::Config>();
    config->metrics.removed_grace = 10min;
    for (const auto& [name, servers] : pools) {
      auto pool = std::make_shared<Pool>();
      pool->config.name = name;
      pool->counters = directory.pool(name);
      for (const std::string& server : servers) {
        Server entry;
        entry.config.name = server;
        entry.backend = directory.backend(name, server);
        pool->servers.push_back(std::move(entry));
      }
      routing->pools.push_back(std::move(pool));
    }
    for (const std::string& name : listeners) {
      directory.listener(name);
      config::Listener listener;
      listener.name = name;
      config->listeners.push_back(listener);
    }
    directory.publish(std::move(routing), std::move(config), "clockwise.yaml", "0123456789ab");
  }
};

// The same with caches: their stores by name, and which pool uses which.
class CacheTotalsTest : public DirectoryTest {
 protected:
  using Stores = std::map<std::string, std::shared_ptr<cache::Store>>;

  void publish(const Stores& stores, const std::map<std::string, std::string>& uses) {
    auto routing = std::make_shared<Routing>();
    for (const auto& [name, store] : stores) {
      auto cache = std::make_shared<Cache>();
      cache->config.name = name;
      cache->store = store;
      routing->caches.push_back(std::move(cache));
    }
    for (const auto& [name, cache] : uses) {
      auto pool = std::make_shared<Pool>();
      pool->config.name = name;
      pool->counters = directory.pool(name);
      const auto found = std::ranges::find(routing->caches, cache,
                                           [](const auto& one) { return one->config.name; });
      pool->cache = {*found, directory.cache(name, cache)};
      routing->pools.push_back(std::move(pool));
    }
    auto config = std::make_shared<config::Config>();
    config->metrics.removed_grace = 10min;
    directory.publish(std::move(routing), std::move(config), "clockwise.yaml", "0123456789ab");
  }

  static std::shared_ptr<cache::Store> store() {
    return std::make_shared<cache::Store>(std::uint64_t{1} << 20, 1024);
  }

  // An answer is stored and made invalid.
  static void invalidate_one(cache::Store& store) {
    const auto joined = store.join({store.hash("key"), "key", {}, {}}, {}, false, 0);
    ASSERT_TRUE(store.begin(*joined.fill, {}, 0));
    store.complete(*joined.fill, 1);
    ASSERT_EQ(store.invalidate("key"), 1U);
  }

  // Counted at the cache `c`; nothing: it is not in the view.
  std::optional<std::uint64_t> hits() const {
    const View view = directory.view();
    if (view.cache_totals.empty()) return std::nullopt;
    return view.cache_totals.at(0).sums(view.caches).requests[0];
  }
  std::optional<std::uint64_t> invalidated() const {
    const View view = directory.view();
    if (view.cache_totals.empty()) return std::nullopt;
    const Cache* cache = view.cache("c");
    return view.cache_totals.at(0).stats(cache ? cache->store.get() : nullptr).evictions[3];
  }
};

Remap remap_of(const std::string& pool, double moved, std::shared_ptr<const RemapWatch> watch) {
  Remap remap;
  remap.cause = "reload";
  remap.report.pool = pool;
  remap.report.moved_ratio = moved;
  remap.report.servers.resize(2);
  remap.report.moves = {{0, 1, moved}};
  remap.watch = std::move(watch);
  return remap;
}

ReloadOutcome outcome_of(ReloadResult result, Trigger trigger) {
  ReloadOutcome outcome;
  outcome.result = result;
  outcome.trigger = trigger;
  return outcome;
}

TEST_F(DirectoryTest, ShowsNothingBeforeTheStart) {
  const View view = directory.view();
  EXPECT_FALSE(view.routing);
  EXPECT_FALSE(view.ready);
  EXPECT_FALSE(view.last_reload);
}

TEST_F(DirectoryTest, ServerThatStaysKeepsItsCounters) {
  publish({{"p", {"a", "b"}}});
  const auto before = directory.backend("p", "a");
  publish({{"p", {"a"}}});
  EXPECT_EQ(directory.backend("p", "a"), before);
}

TEST_F(DirectoryTest, OneNameInTwoPoolsIsTwoServers) {
  publish({{"p", {"a"}}, {"q", {"a"}}});
  EXPECT_NE(directory.backend("p", "a"), directory.backend("q", "a"));
}

TEST_F(DirectoryTest, RemovedServerIsListedUntilTheGraceEnds) {
  publish({{"p", {"a", "b"}}});
  publish({{"p", {"a"}}});
  ASSERT_EQ(directory.view().removed.size(), 1U);
  EXPECT_EQ(directory.view().removed[0].backend->name, "b");
  now += 10min;
  EXPECT_EQ(directory.view().removed.size(), 1U);
  now += 1s;
  EXPECT_TRUE(directory.view().removed.empty());
}

TEST_F(DirectoryTest, ServerBackWithinTheGraceGoesOnCounting) {
  publish({{"p", {"a", "b"}}});
  const auto b = directory.backend("p", "b");
  publish({{"p", {"a"}}});
  now += 9min;
  publish({{"p", {"a", "b"}}});
  EXPECT_EQ(directory.backend("p", "b"), b);
  EXPECT_TRUE(directory.view().removed.empty());
}

TEST_F(DirectoryTest, ServerBackAfterTheGraceStartsAgain) {
  publish({{"p", {"a", "b"}}});
  const auto b = directory.backend("p", "b");
  publish({{"p", {"a"}}});
  now += 11min;
  publish({{"p", {"a", "b"}}});
  EXPECT_NE(directory.backend("p", "b"), b);
}

TEST_F(DirectoryTest, CountersOfARefusedReloadLeaveNoTrace) {
  publish({{"p", {"a"}}});
  directory.backend("p", "never");
  publish({{"p", {"a"}}});
  EXPECT_TRUE(directory.view().removed.empty());
}

TEST_F(DirectoryTest, PoolAndListenerKeepTheirCountersForTheGrace) {
  publish({{"p", {}}, {"q", {}}}, {"web", "old"});
  directory.record_remap(remap_of("q", 0.5, nullptr));
  publish({{"p", {}}}, {"web"});
  EXPECT_EQ(directory.view().removed_pools.size(), 1U);
  EXPECT_EQ(directory.view().listeners.size(), 2U);
  EXPECT_EQ(directory.view().remaps_total, 1U);
  now += 11min;
  EXPECT_EQ(directory.view().remaps_total, 0U) << "of what no series is left";
  publish({{"p", {}}}, {"web"});
  EXPECT_TRUE(directory.view().removed_pools.empty());
  EXPECT_EQ(directory.view().listeners.size(), 1U);
  EXPECT_TRUE(directory.view().remap_totals.empty());
  EXPECT_EQ(directory.view().remaps_total, 0U);
}

TEST_F(DirectoryTest, HistoryIsNewestFirstAndBounded) {
  publish({{"p", {}}});
  for (int i = 0; i < 120; ++i) directory.record_remap(remap_of("p", 0.25, nullptr));
  const View view = directory.view();
  ASSERT_EQ(view.history.size(), 100U);
  EXPECT_EQ(view.history.front()->id, 120U);
  EXPECT_EQ(view.history.back()->id, 21U);
  EXPECT_EQ(view.remaps_total, 120U);
  EXPECT_EQ(view.last_remap.at("p")->id, 120U);
  const RemapTotals totals = view.remap_totals.at({"p", "reload"});
  EXPECT_EQ(totals.remaps, 120U);
  EXPECT_DOUBLE_EQ(totals.keyspace_moved, 30.0);
}

TEST_F(DirectoryTest, GoesOnWhereAnEarlierProcessEnded) {
  SavedHistory saved{.last_id = 41, .remaps = {}};
  for (const std::uint64_t id : {40, 39}) {
    saved.remaps.push_back(remap_of("p", id == 40 ? 0.75 : 0.5, nullptr));
    saved.remaps.back().id = id;
    saved.remaps.back().counted_before = 7;
  }
  directory.restore(std::move(saved));
  publish({{"p", {}}});
  EXPECT_EQ(directory.view().last_remap.at("p")->report.moved_ratio, 0.75);
  EXPECT_EQ(directory.view().last_remap.at("p")->remapped_requests(), 7U);

  EXPECT_EQ(directory.record_remap(remap_of("p", 0.25, nullptr))->id, 42U);
  const View view = directory.view();
  EXPECT_EQ(view.history.size(), 3U);
  EXPECT_EQ(view.history.back()->id, 39U);
  EXPECT_EQ(view.last_remap.at("p")->id, 42U);
  EXPECT_EQ(view.remaps_total, 1U) << "counted since the start";
  EXPECT_EQ(view.remap_totals.at({"p", "reload"}).remaps, 1U);
  EXPECT_EQ(view.remapped_requests.at({"p", "reload"}), 0U);
}

TEST_F(DirectoryTest, AHistoryTooLargeForMemoryLosesItsOldestMoves) {
  publish({{"p", {}}});
  auto watch = std::make_shared<RemapWatch>(2);
  Remap large = remap_of("p", 0.5, watch);
  large.report.moves.resize(kInMemory.moves);
  directory.record_remap(std::move(large));
  EXPECT_EQ(directory.view().history[0]->moves_omitted, 0U);
  directory.record_remap(remap_of("p", 0.1, nullptr));
  watch->requests.at(0).cell.add(3);
  const View view = directory.view();
  EXPECT_EQ(view.history[1]->moves_omitted, kInMemory.moves);
  EXPECT_EQ(view.history[1]->remapped_requests(), 3U) << "it goes on counting";
  EXPECT_EQ(view.remapped_requests.at({"p", "reload"}), 3U);
}

TEST_F(DirectoryTest, RequestsOfExpiredWatchesStayInTheTotals) {
  publish({{"p", {}}});
  auto watch = std::make_shared<RemapWatch>(2);
  directory.record_remap(remap_of("p", 0.1, watch));
  watch->requests.at(0).cell.add(3);
  watch->requests.at(1).cell.add(4);
  EXPECT_EQ(directory.view().remapped_requests.at({"p", "reload"}), 7U);

  const std::weak_ptr<RemapWatch> gone = watch;
  watch.reset();
  auto second = std::make_shared<RemapWatch>(2);
  second->requests.at(0).cell.add(5);
  directory.record_remap(remap_of("p", 0.1, second));
  const View view = directory.view();
  EXPECT_TRUE(gone.expired()) << "the ring it remembers must not be kept with the history";
  EXPECT_EQ(view.remapped_requests.at({"p", "reload"}), 12U);
  EXPECT_EQ(view.history[0]->remapped_requests(), 5U);
  EXPECT_EQ(view.history[1]->remapped_requests(), 7U);
}

TEST_F(DirectoryTest, ReorderedListGoesOnCountingForTheSameChange) {
  const auto previous = *ring::build({.points = 1}, {});
  const auto publish_with = [&](const std::shared_ptr<RemapWatch>& watch) {
    auto pool = std::make_shared<Pool>();
    pool->config.name = "p";
    pool->counters = directory.pool("p");
    pool->watch = watch;
    auto routing = std::make_shared<Routing>();
    routing->pools.push_back(std::move(pool));
    directory.publish(routing, std::make_shared<config::Config>(), "f", "d");
  };
  auto first = std::make_shared<RemapWatch>(2);
  first->previous = previous;
  publish_with(first);
  directory.record_remap(remap_of("p", 0.1, first));
  first->requests.at(0).cell.add(1);
  first.reset();

  auto second = std::make_shared<RemapWatch>(2);
  second->previous = previous;
  publish_with(second);
  second->requests.at(1).cell.add(2);
  EXPECT_EQ(directory.view().history[0]->remapped_requests(), 3U);
  second.reset();

  publish_with(nullptr);
  EXPECT_EQ(directory.view().history[0]->remapped_requests(), 3U);
  EXPECT_EQ(directory.view().last_remap.at("p")->remapped_requests(), 3U);
  EXPECT_EQ(directory.view().remapped_requests.at({"p", "reload"}), 3U);
}

TEST_F(DirectoryTest, EveryReloadIsCountedByTriggerAndResult) {
  ReloadOutcome start = outcome_of(ReloadResult::applied, Trigger::start);
  start.time = WallClock::time_point{100s};
  directory.record_reload(start);
  ReloadOutcome bad = outcome_of(ReloadResult::invalid, Trigger::watch);
  bad.time = WallClock::time_point{200s};
  directory.record_reload(bad);
  const View view = directory.view();
  EXPECT_EQ(view.reloads.at({Trigger::start, ReloadResult::applied}), 1U);
  EXPECT_EQ(view.reloads.at({Trigger::watch, ReloadResult::invalid}), 1U);
  EXPECT_FALSE(view.last_successful);
  EXPECT_EQ(view.last_success, WallClock::time_point{100s});
  EXPECT_EQ(view.last_attempt, WallClock::time_point{200s});
  EXPECT_EQ(view.last_reload->result, ReloadResult::invalid);
}

TEST_F(DirectoryTest, RefusedPoolsAreCounted) {
  Report refused;
  refused.pool = "p";
  refused.refused_by = Guard::max_remap;
  Report harmless;
  harmless.pool = "q";
  ReloadOutcome outcome = outcome_of(ReloadResult::refused, Trigger::api);
  outcome.pools = {refused, harmless};
  directory.record_reload(outcome);
  const View view = directory.view();
  EXPECT_EQ(view.remaps_refused.at("p"), 1U);
  EXPECT_FALSE(view.remaps_refused.contains("q"));
}

TEST_F(DirectoryTest, StoppingIsNeverReady) {
  directory.set_ready(true);
  EXPECT_TRUE(directory.view().ready);
  directory.set_stopping();
  EXPECT_FALSE(directory.view().ready);
  EXPECT_TRUE(directory.view().stopping);
}

TEST(DurationHistogram, BoundsAreInclusive) {
  DurationHistogram histogram;
  histogram.observe(0.0001);
  histogram.observe(0.0002);
  histogram.observe(5);
  EXPECT_EQ(histogram.buckets[0], 1U);
  EXPECT_EQ(histogram.buckets[1], 1U);
  EXPECT_EQ(histogram.buckets.back(), 1U);
  EXPECT_DOUBLE_EQ(histogram.sum_seconds, 5.0003);
}

TEST_F(DirectoryTest, ReadersAndTheWriterMayMeet) {
  publish({{"p", {"a"}}});
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) EXPECT_TRUE(directory.view().routing);
  });
  for (int i = 0; i < 200; ++i) {
    publish({{"p", {"a", "b"}}});
    directory.record_remap(remap_of("p", 0.1, std::make_shared<RemapWatch>(2)));
    publish({{"p", {"a"}}});
  }
  stop = true;
  reader.join();
  EXPECT_EQ(directory.view().remapped_requests.at({"p", "reload"}), 0U);
}

TEST_F(CacheTotalsTest, APoolThatLeavesItsCacheStaysInTheSum) {
  const auto one = store();
  publish({{"c", one}}, {{"p", "c"}, {"q", "c"}});
  directory.cache("p", "c")->cells.at(0).requests[0].add(1);
  directory.cache("q", "c")->cells.at(1).requests[0].add(2);
  EXPECT_EQ(hits(), 3U);
  publish({{"c", one}}, {{"p", "c"}});
  EXPECT_EQ(directory.view().caches.size(), 2U);
  now += 11min;
  EXPECT_EQ(directory.view().caches.size(), 1U);
  EXPECT_EQ(hits(), 3U) << "out of its grace";
  publish({{"c", one}}, {{"p", "c"}, {"q", "c"}});
  EXPECT_EQ(hits(), 3U) << "back";
  EXPECT_EQ(directory.cache("q", "c")->cells.at(1).requests[0].get(), 0U);
  directory.cache("q", "c")->cells.at(1).requests[0].add(4);
  EXPECT_EQ(hits(), 7U);
}

TEST_F(CacheTotalsTest, ANewStoreGoesOnCounting) {
  const auto before = store(), after = store();
  publish({{"c", before}}, {{"p", "c"}});
  invalidate_one(*before);
  publish({{"c", before}}, {{"p", "c"}});
  EXPECT_EQ(invalidated(), 1U);
  publish({{"c", after}}, {{"p", "c"}});
  EXPECT_EQ(invalidated(), 1U);
  invalidate_one(*after);
  publish({{"c", after}}, {{"p", "c"}});
  EXPECT_EQ(invalidated(), 2U);
}

TEST_F(CacheTotalsTest, ARemovedCacheKeepsItsCountsForTheGrace) {
  const auto first = store();
  publish({{"c", first}}, {{"p", "c"}});
  invalidate_one(*first);
  directory.cache("p", "c")->cells.at(0).requests[0].add(1);
  directory.view().cache_totals.at(0).purges->add(cache::PurgeScope::all, PurgeResult::ok);
  publish({}, {});
  EXPECT_FALSE(directory.view().cache("c"));
  EXPECT_EQ(invalidated(), 1U);
  EXPECT_EQ(hits(), 1U);
  now += 9min;
  publish({{"c", store()}}, {{"p", "c"}});
  EXPECT_EQ(invalidated(), 1U) << "back in time";
  EXPECT_EQ(hits(), 1U);
  EXPECT_EQ(
      directory.view().cache_totals.at(0).purges->get(cache::PurgeScope::all, PurgeResult::ok), 1U);
  publish({}, {});
  now += 11min;
  EXPECT_FALSE(invalidated());
  publish({{"c", store()}}, {{"p", "c"}});
  EXPECT_EQ(invalidated(), 0U) << "back too late";
  EXPECT_EQ(hits(), 0U);
}

}  // namespace
}  // namespace clockwise::upstream
