#include "simulate/slots.h"

#include <algorithm>
#include <map>

#include "unit/simulate/support.h"

namespace clockwise::simulate {
namespace {

using Counts = std::map<ring::ServerIndex, int>;

Counts counts(const SlotTable& table) {
  Counts counts;
  for (const ring::ServerIndex owner : table) ++counts[owner];
  return counts;
}

// How many slots have another server, by name, in the table after.
int moved(const SlotTable& before, const SlotTable& after, const Change& change) {
  int moved = 0;
  for (std::size_t slot = 0; slot < kSlots; ++slot)
    moved += change.before[before[slot]].name != change.after[after[slot]].name ? 1 : 0;
  return moved;
}

TEST(Slots, ChecksumIsThePublishedOne) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(crc16(""), 0);
  EXPECT_EQ(crc16(std::string_view("\0", 1)), 0);
  EXPECT_EQ(crc16("\xff"), 0x1EF0);
}

// What CLUSTER KEYSLOT answers.
TEST(Slots, OfKeysAsTheServerCountsThem) {
  EXPECT_EQ(slot_of("foo"), 12182u);
  EXPECT_EQ(slot_of("bar"), 5061u);
  EXPECT_EQ(slot_of("somekey"), 11058u);
  EXPECT_EQ(slot_of("foo{hash_tag}"), 2515u);
}

TEST(Slots, OnlyAFilledTagIsHashed) {
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{}{bar}"), crc16("foo{}{bar}") % kSlots);
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_EQ(slot_of("foo}{bar"), crc16("foo}{bar") % kSlots);
}

TEST(Slots, AreSharedOutInEvenRanges) {
  const SlotTable table = even_slots(nodes({"a", "b", "c"}));
  ASSERT_EQ(table.size(), kSlots);
  EXPECT_TRUE(std::ranges::is_sorted(table));
  EXPECT_EQ(counts(table), (Counts{{0, 5461}, {1, 5462}, {2, 5461}}));
}

TEST(Slots, FollowWeights) {
  EXPECT_EQ(counts(even_slots(Nodes{{"a", 3}, {"none", 0}, {"b", 1}})),
            (Counts{{0, 12288}, {2, 4096}}));
}

TEST(Slots, GrowthMovesNothingButTheNewcomersPart) {
  const Change change{nodes({"a", "b", "c", "d"}), nodes({"a", "b", "c", "d", "e"})};
  const SlotTable before = even_slots(change.before);
  const SlotTable after = reshard(before, change);
  ASSERT_EQ(after.size(), kSlots);
  const Counts counted = counts(after);
  for (ring::ServerIndex i = 0; i < 5; ++i) EXPECT_NEAR(counted.at(i), kSlots / 5.0, 1);
  EXPECT_EQ(moved(before, after, change), counted.at(4));
}

TEST(Slots, ARemovedServersPartIsSpreadAndNothingElseMoves) {
  const Change change{nodes({"a", "b", "c", "d"}), nodes({"a", "c", "d"})};
  const SlotTable before = even_slots(change.before);
  const SlotTable after = reshard(before, change);
  for (const auto& [server, count] : counts(after)) EXPECT_NEAR(count, kSlots / 3.0, 1) << server;
  EXPECT_EQ(moved(before, after, change), 4096);
}

TEST(Slots, ThatChangeNothingMoveNothing) {
  for (const auto& list : {nodes({"a", "b", "c"}), Nodes{{"a", 2.5}, {"b", 1}, {"c", 0}}}) {
    const SlotTable before = even_slots(list);
    EXPECT_EQ(reshard(before, {list, list}), before);
  }
}

}  // namespace
}  // namespace clockwise::simulate
