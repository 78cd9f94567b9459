// A purge while it is under way, which only the shard itself shows.
#include "cache/shard.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace clockwise::cache
