// What the literature sets beside a ring: each against published values or the law it promises.
#include <gmock/gmock.h>

#include "simulate/bounded.h"
#include "simulate/jump.h"
#include "simulate/rendezvous.h"
#include "unit/simulate/support.h"

namespace clockwise::simulate {
namespace {

using testing::HasSubstr;

TEST(Jump, AgreesWithOtherImplementations) {
  const struct {
    std::uint64_t key;
    std::uint32_t buckets, owner;
  } cases[] = {
      {1, 1, 0},        {42, 57, 43}, {0xDEAD10CC, 1, 0},          {0xDEAD10CC, 666, 361},
      {256, 1024, 520}, {0, 1000, 0}, {10863919174838991u, 11, 6}, {2016238256797177309u, 11, 3},
  };
  for (const auto& [key, buckets, owner] : cases) EXPECT_EQ(jump(key, buckets), owner) << key;
}

TEST(Jump, AKeyStaysOrGoesToTheNewBucket) {
  for (std::uint64_t key = 0; key < 2000; ++key) {
    const std::uint64_t spread = key * 0x9E3779B97F4A7C15u;
    for (std::uint32_t buckets = 1; buckets < 40; ++buckets) {
      const std::uint32_t next = jump(spread, buckets + 1);
      ASSERT_TRUE(next == jump(spread, buckets) || next == buckets) << key << " of " << buckets;
    }
  }
}

TEST(Jump, TakesNoWeightsAndSaysSo) {
  const Change change{{{"a", 2}}, {{"a", 2}, {"b", 1}}};
  const auto refused = places(contestant("jump").value(), change, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "jump takes no weights but 1, a has 2");
}

TEST(Jump, RenumbersWhatFollowsAServerThatGoes) {
  const Row last = row_of("jump", {nodes({"a", "b", "c", "d"}), nodes({"a", "b", "c"})});
  EXPECT_EQ(last.needless, 0u);
  const Row first = row_of("jump", {nodes({"a", "b", "c", "d"}), nodes({"b", "c", "d"})});
  EXPECT_GT(first.needless_ratio(), 0.3);
}

TEST(RendezvousLaw, AnotherServerTakesKeysAndNothingElseMoves) {
  const Change change{nodes({"a", "b", "c", "d"}), nodes({"a", "b", "c", "d", "e"})};
  const Row row = row_of("rendezvous", change, 100'000);
  EXPECT_EQ(row.needless, 0u);
  EXPECT_EQ(row.moved, row.counts.back().second);
  EXPECT_NEAR(row.moved_ratio(), 0.2, 0.005);
  EXPECT_LT(row.deviation_ratio(), 0.01);
}

TEST(RendezvousLaw, KeysFollowWeights) {
  const Change change{{{"a", 1}, {"b", 2.5}, {"none", 0}}, {{"a", 1}, {"b", 4}, {"none", 0}}};
  const Row row = row_of("rendezvous", change, 100'000);
  EXPECT_NEAR(static_cast<double>(row.counts[1].second), 80'000, 500);
  EXPECT_EQ(row.counts[2].second, 0u);
  // More weight only draws keys, so what moves is the difference of the parts.
  EXPECT_NEAR(row.moved_ratio(), row.minimum_ratio, 0.005);
}

TEST(RendezvousLaw, TheOrderOfTheListDoesNotMatter) {
  EXPECT_EQ(row_of("rendezvous", {nodes({"a", "b", "c"}), nodes({"c", "a", "b"})}).moved, 0u);
}

TEST(BoundedLoads, NoServerTakesMoreThanItsLimit) {
  Contestant bounded = contestant("bounded").value();
  bounded.scheme.points = 1;
  for (const double balance : {1.0, 1.05, 1.25, 2.0}) {
    bounded.balance = balance;
    const Change change{nodes({"a", "b", "c", "d"}), nodes({"a", "b", "c", "d", "e"})};
    const Row row = row_of(bounded, change, 10'007);
    std::uint64_t placed = 0;
    for (const auto& [name, count] : row.counts) {
      EXPECT_LE(count, static_cast<std::uint64_t>(std::ceil(balance * 10'007 / 5))) << name;
      placed += count;
    }
    EXPECT_EQ(placed, 10'007u);
  }
}

TEST(BoundedLoads, AServerWithoutWeightTakesNothing) {
  const Nodes list{{"a", 1}, {"none", 0}, {"b", 3}};
  Contestant bounded = contestant("bounded").value();
  bounded.balance = 1;
  const Row row = row_of(bounded, {list, list}, 1000);
  EXPECT_EQ(row.counts, (decltype(row.counts){{"a", 250}, {"none", 0}, {"b", 750}}));
}

TEST(BoundedLoads, AWideLimitIsThePlainRing) {
  Contestant bounded = contestant("bounded").value();
  bounded.balance = 100;
  const Change change{nodes({"a", "b", "c"}), nodes({"a", "c"})};
  EXPECT_EQ(row_of(bounded, change).counts, row_of("clockwise", change).counts);
}

TEST(Contestants, HaveNamesThatLeadBackToThem) {
  for (const std::string_view known : names()) EXPECT_EQ(name(contestant(known).value()), known);
  EXPECT_FALSE(contestant("ketamaa"));
}

}  // namespace
}  // namespace clockwise::simulate
