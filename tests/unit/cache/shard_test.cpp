// What only the shard itself shows: a purge while it is under way, and what a miss costs.
#include "cache/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "support/stores.h"

namespace clockwise::cache {
namespace {

constexpr std::int64_t kNow = 1'000'000;

class ShardPurge : public testing::Test {
 protected:
  // An answer whose fetch began when the store was so far.
  void put(const std::string& key, std::uint32_t generation) {
    const auto joined = shard_.join(wanted(key), find(key), true, generation, kNow);
    Draft draft;
    draft.head = "X: 1\r\n";
    draft.tags = "red";
    draft.length = 0;
    ASSERT_TRUE(shard_.begin(*joined.fill, draft, kNow));
    shard_.complete(*joined.fill, 10);
  }
  ObjectRef find(const std::string& key) { return shard_.find(wanted(key), kNow).object; }

  Shard shard_{4 * test::kMiB};

 private:
  Wanted wanted(const std::string& key) const {
    return {
        .hash = test::mixed(std::hash<std::string>{}(key)), .key = key, .octets = {}, .fields = {}};
  }
};

TEST_F(ShardPurge, CountsBeforeAllIsFound) {
  put("http://a/1", 1);
  put("http://a/2", 1);
  put("http://b/1", 1);
  const PurgeRule rule{.scope = PurgeScope::host, .text = "a", .generation = 2};
  shard_.add_rule(rule);
  EXPECT_FALSE(find("http://a/1"));
  EXPECT_TRUE(find("http://b/1"));
  put("http://a/2", 2);
  EXPECT_TRUE(find("http://a/2")) << "fetched after it";
  EXPECT_EQ(shard_.apply_rule(rule), 1U);
  EXPECT_FALSE(find("http://a/1"));
  EXPECT_TRUE(find("http://a/2"));
  EXPECT_TRUE(find("http://b/1"));
  put("http://a/1", 1);
  EXPECT_TRUE(find("http://a/1")) << "it is over";
}

TEST_F(ShardPurge, MakesStaleBeforeAllIsFound) {
  put("http://a/1", 1);
  put("http://b/1", 1);
  const PurgeRule rule{.scope = PurgeScope::host, .text = "a", .soft = true, .generation = 2};
  shard_.add_rule(rule);
  EXPECT_TRUE(find("http://a/1")->made_stale());
  EXPECT_FALSE(find("http://b/1")->made_stale());
  put("http://a/1", 2);
  EXPECT_FALSE(find("http://a/1")->made_stale());
  EXPECT_EQ(shard_.apply_rule(rule), 0U);
  EXPECT_FALSE(find("http://a/1")->made_stale());
}

TEST_F(ShardPurge, TwoAtOnceEachTakeTheirs) {
  put("http://a/1", 1);
  put("http://b/1", 2);
  put("http://c/1", 3);
  const PurgeRule first{.scope = PurgeScope::tag, .text = "red", .generation = 2};
  const PurgeRule second{.scope = PurgeScope::tag, .text = "red", .generation = 3};
  shard_.add_rule(first);
  shard_.add_rule(second);
  EXPECT_EQ(shard_.apply_rule(first), 1U);
  EXPECT_FALSE(find("http://b/1")) << "the other is still under way";
  EXPECT_EQ(shard_.apply_rule(second), 1U);
  EXPECT_TRUE(find("http://c/1"));
}

// The shortest of some times that so many misses of one key took.
double cost_of_misses(Shard& shard) {
  const std::string key = "http://a/asked";
  const Wanted wanted{.hash = 1, .key = key, .octets = {}, .fields = {}};
  double least = std::numeric_limits<double>::max();
  for (int turn = 0; turn < 20; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < 20; ++n) {
      const auto joined = shard.join(wanted, {}, true, 1, kNow);
      shard.leave(*joined.fill);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

TEST(Shard, AMissCostsTheSameHoweverManyFetchesAreUnderWay) {
  for (const bool of_one_key : {false, true}) {
    Shard shard(4 * test::kMiB);
    const auto fetch = [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t n = from; n < to; ++n) {
        const std::string key = of_one_key ? "http://a/asked" : "http://a/" + std::to_string(n);
        const Wanted wanted{.hash = of_one_key ? 1 : n, .key = key, .octets = {}, .fields = {}};
        ASSERT_TRUE(shard.join(wanted, {}, true, 1, kNow).leads);
      }
    };
    fetch(2, 300);
    const double few = cost_of_misses(shard);
    fetch(300, 60'000);
    EXPECT_LT(cost_of_misses(shard), 5 * few) << of_one_key;
  }
}

}  // namespace
}  // namespace clockwise::cache
