#include "io/gather.h"

#include <gtest/gtest.h>

namespace clockwise::io {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

// One that has seen answers take so long.
Gather gather_of(std::uint64_t took_ns, double share = 0.05) {
  Gather gather;
  for (int i = 0; i < 1'000; ++i) {
    gather.begun(1, share);
    gather.ended(1, took_ns);
  }
  (void)gather.pause_ns();
  return gather;
}

TEST(Gather, PausesForItsShareOfWhatAnswersTake) {
  Gather gather = gather_of(2 * kMillisecond);
  gather.begun(Gather::kMany, 0.05);
  EXPECT_NEAR(static_cast<double>(gather.pause_ns()), 100'000, 1);
}

TEST(Gather, DoesNotPauseWithFewUnderWay) {
  Gather gather = gather_of(2 * kMillisecond);
  EXPECT_EQ(gather.pause_ns(), 0U);
  gather.begun(Gather::kMany - 1, 0.05);
  EXPECT_EQ(gather.pause_ns(), 0U);
  gather.begun(1, 0.05);
  EXPECT_GT(gather.pause_ns(), 0U);
  gather.dropped(1);
  EXPECT_EQ(gather.pause_ns(), 0U);
}

TEST(Gather, DoesNotPauseWhereAnswersAreFastAndNeverForLong) {
  Gather fast = gather_of(kMillisecond / 2);
  fast.begun(1'000, 0.05);
  EXPECT_EQ(fast.pause_ns(), 0U);
  Gather slow = gather_of(1'000 * kMillisecond);
  slow.begun(1'000, 0.05);
  EXPECT_EQ(static_cast<double>(slow.pause_ns()), Gather::kLongest);
}

TEST(Gather, GoesByTheFastWhereSomeTakeLong) {
  Gather gather = gather_of(kMillisecond / 10);
  gather.begun(1'000, 0.05);
  for (int timeouts = 0; timeouts < 2; ++timeouts) gather.ended(1, 1'000 * kMillisecond);
  EXPECT_EQ(gather.pause_ns(), 0U);
  for (int i = 0; i < 500; ++i) gather.ended(1, i % 10 == 0 ? 5 * kMillisecond : kMillisecond / 10);
  (void)gather.pause_ns();
  EXPECT_EQ(gather.pause_ns(), 0U);
}

TEST(Gather, DoesNotPauseBeforeItKnowsHowLongAnswersTake) {
  Gather gather;
  gather.begun(1'000, 0.05);
  EXPECT_EQ(gather.pause_ns(), 0U);
}

TEST(Gather, DoesNotPauseWhileSomethingElseIsUnderWay) {
  Gather gather = gather_of(2 * kMillisecond);
  gather.begun(1'000, 0.05);
  gather.urgent_begun();
  EXPECT_EQ(gather.pause_ns(), 0U);
  gather.urgent_ended();
  EXPECT_GT(gather.pause_ns(), 0U);
}

// What comes together without a pause is what waits for this loop.
TEST(Gather, DoesNotPauseAfterATurnThatHadMuch) {
  Gather gather = gather_of(2 * kMillisecond);
  gather.begun(1'000, 0.05);
  gather.ended(200, 2 * kMillisecond);
  EXPECT_EQ(gather.pause_ns(), 0U);
  gather.ended(10, 2 * kMillisecond);
  EXPECT_GT(gather.pause_ns(), 0U);
}

TEST(Gather, GoesByTheSmallestShareUntilNothingIsUnderWay) {
  Gather gather = gather_of(2 * kMillisecond);
  gather.begun(1'000, 0.05);
  gather.begun(1, 0);
  EXPECT_EQ(gather.pause_ns(), 0U);
  gather.dropped(1'001);
  gather.begun(1'000, 0.05);
  EXPECT_GT(gather.pause_ns(), 0U);
}

}  // namespace
}  // namespace clockwise::io
