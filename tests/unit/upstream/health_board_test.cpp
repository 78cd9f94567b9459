#include "upstream/health_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "support/pools.h"
#include "upstream/choose.h"
#include "upstream/routing.h"

namespace clockwise::upstream {
namespace {

using namespace std::chrono_literals;
using metrics::BackendError;
using testing::HasSubstr;

// A pool whose time goes by as the test says.
class World {
 public:
  explicit World(std::size_t servers, config::Outlier outlier = {}) {
    config::Pool config;
    config.name = "pages";
    config.outlier = outlier;
    for (std::size_t i = 0; i < servers; ++i)
      config.servers.push_back(test::server("s" + std::to_string(i)));
    pool.ring = test::BuiltPool(config).ring;
    pool.health = std::make_shared<HealthBoard>("pages", [this] { return now; });
    for (const config::Server& server : config.servers) {
      auto backend = std::make_shared<Backend>("pages", server.name, 2);
      auto mark = std::make_shared<HealthMark>(backend);
      pool.servers.push_back({server, {}, std::move(backend), std::move(mark)});
    }
    pool.config = std::move(config);
    pool.health->configure(pool);
  }

  HealthMark& mark(std::size_t i) { return *pool.servers[i].health; }
  HealthCounters& counters(std::size_t i) { return pool.servers[i].backend->health; }
  HealthBoard& board() { return *pool.health; }
  void fail(std::size_t i, int times, bool trial = false) {
    for (int n = 0; n < times; ++n) board().failed(mark(i), BackendError::connect, trial);
  }
  void wait(std::chrono::milliseconds time) {
    now += time;
    board().pass_time();
  }
  std::size_t usable() {
    std::size_t n = 0;
    for (const Server& server : pool.servers) n += server.health->usable();
    return n;
  }
  // Where a request for `key` goes, and after that where its further tries do.
  std::vector<ring::ServerIndex> way(std::string_view key) {
    std::vector<ring::ServerIndex> tried;
    while (const auto next = choose(pool, pool.ring->hash(key), tried))
      tried.push_back(next->server);
    return tried;
  }

  HealthBoard::Time now{std::chrono::hours(1)};
  Pool pool;
};

config::Outlier after(std::uint32_t failures) {
  config::Outlier outlier;
  outlier.consecutive_failures = failures;
  outlier.max_ejected = 1;
  return outlier;
}

TEST(HealthBoard, FailuresInARowEject) {
  World world(3, after(5));
  world.fail(1, 4);
  EXPECT_TRUE(world.board().all_well());
  world.mark(1).succeeded();
  world.fail(1, 4);
  EXPECT_TRUE(world.board().all_well()) << "a success begins the row anew";
  world.fail(1, 1);
  EXPECT_FALSE(world.board().all_well());
  EXPECT_FALSE(world.mark(1).usable());
  EXPECT_EQ(world.counters(1).ejections, 1u);
  EXPECT_EQ(world.counters(1).transitions, 1u);
  const auto changes = world.board().take_changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(changes[0].text, HasSubstr("server s1 is out for 3"));
  EXPECT_THAT(changes[0].text, HasSubstr("5 requests in a row failed, the last: no connection"));
}

TEST(HealthBoard, ExactlyOneRequestTriesAServerWhoseEjectionIsOver) {
  World world(3, after(1));
  world.fail(0, 1);
  EXPECT_FALSE(world.mark(0).begin_trial());
  world.wait(34s);
  ASSERT_TRUE(world.mark(0).begin_trial());
  EXPECT_FALSE(world.mark(0).begin_trial());
  world.board().not_tried(world.mark(0));
  ASSERT_TRUE(world.mark(0).begin_trial()) << "it told nothing, so the next one tries";
  world.board().tried(world.mark(0), true);
  EXPECT_TRUE(world.mark(0).usable());
  EXPECT_TRUE(world.board().all_well());
  EXPECT_EQ(world.counters(0).transitions, 2u);
}

TEST(HealthBoard, AFailedTrialEjectsAgain) {
  World world(3, after(1));
  world.fail(0, 1);
  world.wait(34s);
  ASSERT_TRUE(world.mark(0).begin_trial());
  world.fail(0, 1, true);
  EXPECT_FALSE(world.mark(0).usable());
  EXPECT_EQ(world.counters(0).ejections, 2u);
  EXPECT_EQ(world.counters(0).transitions, 1u);
  world.wait(59s);
  EXPECT_FALSE(world.mark(0).awaits_trial());
  world.wait(8s);
  EXPECT_TRUE(world.mark(0).awaits_trial());
}

TEST(HealthBoard, OneOfManyThreadsBeginsTheTrial) {
  World world(2, after(1));
  for (int round = 0; round < 50; ++round) {
    world.fail(0, 1);
    world.wait(400s);
    std::atomic<int> began{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] { began += world.mark(0).begin_trial() ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(began, 1);
    world.board().tried(world.mark(0), true);
  }
}

TEST(HealthBoard, NoMoreThanTheShareIsEjected) {
  config::Outlier outlier = after(1);
  outlier.max_ejected = 0.5;
  World world(5, outlier);
  for (std::size_t i = 0; i < 5; ++i) world.fail(i, 3);
  EXPECT_EQ(world.usable(), 3u);
  EXPECT_THAT(world.board().take_changes().back().text, HasSubstr("is spared"));
}

TEST(HealthBoard, AStragglerIsEjectedAfterTheInterval) {
  World world(3, after(0));
  const auto serve = [&](std::size_t server, metrics::Code code, std::uint64_t n) {
    auto& cells = world.pool.servers[server].backend->cells.at(0);
    cells.requests[static_cast<std::size_t>(code)].add(n);
  };
  for (std::size_t i = 0; i < 3; ++i) serve(i, metrics::Code::c2xx, 200);
  serve(2, metrics::Code::c5xx, 100);
  world.wait(9s);
  EXPECT_EQ(world.usable(), 3u);
  world.wait(1s);
  EXPECT_FALSE(world.mark(2).usable());
  EXPECT_EQ(world.usable(), 2u);
  EXPECT_THAT(world.board().report(world.mark(2)).cause, HasSubstr("100 of 300 requests failed"));
}

TEST(HealthBoard, RulesThatAreGoneAreForgotten) {
  World world(2, after(1));
  world.fail(0, 1);
  world.pool.config.outlier.reset();
  world.board().configure(world.pool);
  EXPECT_TRUE(world.board().all_well());
  world.fail(0, 100);
  EXPECT_TRUE(world.mark(0).usable());
}

TEST(HealthBoard, WhoIsSetDownIsForgottenAndThatIsNoRecovery) {
  World world(6, after(1));
  world.pool.config.health.emplace();
  world.board().configure(world.pool);
  world.board().checked(world.mark(0), false, "status 503");
  world.fail(1, 1);
  EXPECT_EQ(world.board().take_changes().size(), 2u);
  for (const std::size_t i : {0, 1}) world.pool.servers[i].config.state = config::ServerState::down;
  world.board().configure(world.pool);
  // A check that was under way then tells nothing any more.
  world.board().checked(world.mark(0), false, "status 503");
  EXPECT_TRUE(world.board().take_changes().empty());
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(world.counters(i).transitions, 1u);
    const HealthReport report = world.board().report(world.mark(i));
    EXPECT_FALSE(report.checked);
    EXPECT_FALSE(report.ejected);
    EXPECT_FALSE(report.since);
    EXPECT_EQ(report.standing, Standing::usable);
    EXPECT_TRUE(world.mark(i).usable());
  }
  EXPECT_TRUE(world.board().all_well());

  for (const std::size_t i : {0, 1})
    world.pool.servers[i].config.state = config::ServerState::active;
  world.board().configure(world.pool);
  EXPECT_TRUE(world.board().take_changes().empty());
  world.board().checked(world.mark(0), false, "status 503");
  EXPECT_FALSE(world.mark(0).usable()) << "the first check decides by itself";
}

TEST(HealthBoard, AServerThatLeftIsNotEjected) {
  World world(3, after(1));
  const auto gone = world.pool.servers[0].health;
  world.pool.servers.erase(world.pool.servers.begin());
  world.board().configure(world.pool);
  world.board().failed(*gone, BackendError::reset, false);
  EXPECT_TRUE(world.board().all_well());
  EXPECT_TRUE(world.board().take_changes().empty());
}

TEST(HealthBoard, ReportsTheNewestFailure) {
  World world(2, after(5));
  EXPECT_FALSE(world.board().report(world.mark(0)).last_failure);
  world.board().failed(world.mark(0), BackendError::timeout, false);
  EXPECT_EQ(world.board().report(world.mark(0)).last_failure->cause, "request: no answer in time");
  world.pool.config.health.emplace();
  world.board().configure(world.pool);
  std::this_thread::sleep_for(2ms);  // times are told in milliseconds
  world.board().checked(world.mark(0), false, "status 503");
  const HealthReport report = world.board().report(world.mark(0));
  EXPECT_EQ(report.last_failure->cause, "check: status 503");
  EXPECT_EQ(report.cause, "its checks fail, the last: status 503");
  EXPECT_FALSE(report.passing);
  EXPECT_EQ(world.counters(0).checks_failed, 1u);
}

// --- who is asked -------------------------------------------------------------------------------

TEST(Choose, KeysOfAServerThatIsOutGoToTheNextAndNoOtherKeyMoves) {
  World world(5, after(1));
  world.fail(2, 1);
  std::set<ring::ServerIndex> took_over;
  for (int i = 0; i < 5'000; ++i) {
    const auto hash = world.pool.ring->hash("/" + std::to_string(i));
    const ring::ServerIndex home = world.pool.ring->owner(hash);
    const auto chosen = choose(world.pool, hash, {});
    ASSERT_TRUE(chosen);
    if (home != 2) {
      ASSERT_EQ(chosen->server, home);
      continue;
    }
    ASSERT_EQ(chosen->server, world.pool.ring->successor(hash, std::vector{home})->server);
    took_over.insert(chosen->server);
  }
  EXPECT_EQ(took_over.size(), 4u);
}

TEST(Choose, WhoIsOutIsTheLastResort) {
  World world(4, after(1));
  const auto well = world.way("/some/key");
  world.fail(well[0], 1);
  EXPECT_EQ(world.way("/some/key"), (std::vector{well[1], well[2], well[3], well[0]}));
}

TEST(Choose, InAPanicTheHomeIsFirstAndThenThoseThatAreWell) {
  World world(4, after(1));
  const auto well = world.way("/some/key");
  for (const std::size_t i : {0, 1, 3}) world.fail(well[i], 1);
  ASSERT_TRUE(world.board().panic());
  EXPECT_EQ(world.way("/some/key"), (std::vector{well[0], well[2], well[1], well[3]}));
}

TEST(Choose, WithNobodyLeftItIsThePlainRing) {
  World world(3, after(1));
  const auto well = world.way("/some/key");
  for (std::size_t i = 0; i < 3; ++i) world.fail(i, 1);
  EXPECT_EQ(world.way("/some/key"), well);
}

TEST(Choose, TheRequestThatMeetsAServerOnTrialTriesIt) {
  World world(3, after(1));
  const auto well = world.way("/some/key");
  world.fail(well[0], 1);
  world.wait(40s);
  const auto hash = world.pool.ring->hash("/some/key");
  const auto first = choose(world.pool, hash, {});
  EXPECT_EQ(first->server, well[0]);
  EXPECT_TRUE(first->trial);
  const auto second = choose(world.pool, hash, {});
  EXPECT_EQ(second->server, well[1]);
  EXPECT_FALSE(second->trial);
}

TEST(Choose, ASecondRequestGoesToNobodyWhoIsThoughtIll) {
  World world(3, after(1));
  const auto well = world.way("/some/key");
  const auto hash = world.pool.ring->hash("/some/key");
  EXPECT_EQ(choose_second(world.pool, hash, std::vector{well[0]}), well[1]);
  world.fail(well[1], 1);
  EXPECT_EQ(choose_second(world.pool, hash, std::vector{well[0]}), well[2]);
  EXPECT_EQ(choose_second(world.pool, hash, std::vector{well[0], well[2]}), std::nullopt);
  world.pool.config.failover = config::Failover::fail_fast;
  EXPECT_EQ(choose_second(world.pool, hash, std::vector{well[0]}), std::nullopt);
}

TEST(Choose, FailFastAsksNobodyButTheHome) {
  World world(3, after(1));
  const auto well = world.way("/some/key");
  world.pool.config.failover = config::Failover::fail_fast;
  EXPECT_EQ(world.way("/some/key"), std::vector{well[0]});
  world.fail(well[0], 1);
  EXPECT_TRUE(world.way("/some/key").empty());
  world.wait(40s);
  EXPECT_EQ(world.way("/some/key"), std::vector{well[0]}) << "the trial";
  for (std::size_t i = 1; i < 3; ++i) world.fail(well[i], 1);
  ASSERT_TRUE(world.board().panic());
  EXPECT_EQ(world.way("/some/key"), std::vector{well[0]});
}

}  // namespace
}  // namespace clockwise::upstream
