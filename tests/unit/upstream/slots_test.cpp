#include "upstream/slots.h"

#include <gtest/gtest.h>

namespace clockwise::upstream {
namespace {

class TwoWorkers : public testing::Test {
 protected:
  explicit TwoWorkers(std::uint32_t max = 4) {
    a.limit(max);
    b.limit(max);
  }
  static int take(Slots& worker, int wanted) {
    int taken = 0;
    while (taken < wanted && worker.take()) ++taken;
    return taken;
  }
  static void wait(Slots& worker, int requests) {
    for (int i = 0; i < requests; ++i) worker.wait();
  }
  [[nodiscard]] std::uint32_t open() const { return shared.open.load(); }

  Backend::Shared shared;
  Slots a{shared}, b{shared};
  io::Milliseconds now = 1000;
};

TEST_F(TwoWorkers, TogetherNeverHaveMoreThanTheLimit) {
  EXPECT_EQ(take(a, 3), 3);
  EXPECT_EQ(take(b, 3), 1);
  EXPECT_FALSE(a.take());
  a.give_back();
  EXPECT_TRUE(b.take());
  EXPECT_FALSE(a.take());
  EXPECT_EQ(open(), 4U);
}

TEST_F(TwoWorkers, WithoutALimitTakeWhatTheyLike) {
  a.limit(0);
  EXPECT_FALSE(a.limited());
  EXPECT_EQ(take(a, 100), 100);
  EXPECT_EQ(open(), 100U) << "counted all the same: a limit may come with the next reload";
  EXPECT_FALSE(b.take());
}

TEST_F(TwoWorkers, ALowerLimitHoldsOnceTheOldConnectionsAreGone) {
  EXPECT_EQ(take(a, 4), 4);
  EXPECT_FALSE(a.exceeded());
  a.limit(2);
  EXPECT_TRUE(a.exceeded());
  a.give_back();
  EXPECT_FALSE(a.take());
  a.give_back();
  a.give_back();
  EXPECT_TRUE(a.take());
  EXPECT_FALSE(a.take());
}

TEST_F(TwoWorkers, NobodyGivesUpWhereNobodyElseWaits) {
  EXPECT_EQ(take(a, 4), 4);
  wait(a, 3);
  EXPECT_EQ(a.to_give_up(now, 0), 0U);
  EXPECT_EQ(a.to_give_up(now + 10'000, 4), 0U);
}

TEST_F(TwoWorkers, IdleConnectionsAreGivenUpAtOnce) {
  EXPECT_EQ(take(a, 4), 4);
  wait(b, 3);
  EXPECT_EQ(a.to_give_up(now, 4), 3U) << "as many as others wait for";
}

TEST_F(TwoWorkers, OneWhoDoesNotNeedThemKeepsItsShareOfBusyOnes) {
  EXPECT_EQ(take(a, 4), 4);
  wait(b, 10);
  EXPECT_EQ(a.to_give_up(now, 0), 2U);
}

TEST_F(TwoWorkers, OneWhoseOwnRequestsWaitGivesUpItsSurplusAfterATurn) {
  EXPECT_EQ(take(a, 4), 4);
  wait(a, 10);
  wait(b, 10);
  EXPECT_EQ(a.to_give_up(now, 0), 0U);
  EXPECT_EQ(a.to_give_up(now + Slots::kTurn - 1, 0), 0U);
  EXPECT_EQ(a.to_give_up(now + Slots::kTurn, 0), 2U);
  EXPECT_EQ(a.to_give_up(now + Slots::kTurn + 50, 0), 0U) << "the next turn begins";
}

TEST_F(TwoWorkers, WhatWasGivenUpIsForTheOther) {
  EXPECT_EQ(take(a, 4), 4);
  wait(a, 10);
  wait(b, 10);
  (void)a.to_give_up(now, 0);
  EXPECT_EQ(a.to_give_up(now + Slots::kTurn, 0), 2U);
  a.give_back();
  a.give_back();
  EXPECT_FALSE(a.take());
  EXPECT_EQ(take(b, 10), 2);
}

TEST_F(TwoWorkers, OneAtItsShareLeavesTheRestToWhoWaits) {
  EXPECT_EQ(take(a, 2), 2);
  wait(b, 1);
  EXPECT_FALSE(a.take());
  EXPECT_TRUE(b.take());
  b.waited();
  EXPECT_TRUE(a.take());
}

TEST_F(TwoWorkers, ASlotThatNobodyComesForIsTakenAgain) {
  EXPECT_EQ(take(a, 4), 4);
  wait(b, 1);
  EXPECT_EQ(a.to_give_up(now, 1), 1U);
  a.give_back();
  EXPECT_FALSE(a.take());
  b.waited();
  EXPECT_TRUE(a.take());
}

class OneConnection : public TwoWorkers {
 protected:
  OneConnection() : TwoWorkers(1) {}
};

TEST_F(OneConnection, ChangesHandsTurnByTurn) {
  wait(a, 1000);
  wait(b, 1000);
  EXPECT_TRUE(a.take());
  Slots* holder = &a;
  Slots* other = &b;
  int changes = 0;
  for (int tick = 0; tick < 40; ++tick, now += 50) {
    (void)other->to_give_up(now, 0);
    if (holder->to_give_up(now, 0) == 0) continue;
    holder->give_back();
    EXPECT_FALSE(holder->take());
    ASSERT_TRUE(other->take());
    std::swap(holder, other);
    ++changes;
  }
  EXPECT_GE(changes, 5);
  EXPECT_EQ(open(), 1U);
}

}  // namespace
}  // namespace clockwise::upstream
