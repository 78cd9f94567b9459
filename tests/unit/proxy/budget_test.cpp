#include "proxy/budget.h"

#include <gtest/gtest.h>

namespace clockwise::proxy {
namespace {

constexpr std::uint64_t kNow = 1'000'000;

// How many tries in a row are allowed at one moment.
int spend(Budget& budget, std::uint64_t now, int at_most = 1000) {
  int tries = 0;
  while (tries < at_most && budget.allows(now)) {
    budget.take();
    ++tries;
  }
  return tries;
}

TEST(Budget, BeginsWithItsReserve) {
  Budget budget(10, 1);
  EXPECT_EQ(spend(budget, kNow), 10);
  Budget none(0, 0);
  EXPECT_FALSE(none.allows(kNow));
}

TEST(Budget, IsAShareOfTheRequests) {
  Budget budget(10, 1);
  (void)spend(budget, kNow);
  int tries = 0;
  for (int request = 0; request < 1000; ++request) {
    budget.deposit(0.2);
    tries += spend(budget, kNow);
  }
  EXPECT_EQ(tries, 200);
}

TEST(Budget, RefillsItsReserveWithTime) {
  Budget budget(10, 1);
  (void)spend(budget, kNow);
  EXPECT_EQ(spend(budget, kNow + 500), 0);
  EXPECT_EQ(spend(budget, kNow + 3'100), 3);
  EXPECT_EQ(spend(budget, kNow + 3'600'000), 10);
}

TEST(Budget, TimeAddsNothingAboveTheReserve) {
  Budget budget(10, 1);
  EXPECT_TRUE(budget.allows(kNow));
  EXPECT_EQ(spend(budget, kNow + 3'600'000), 10);
}

TEST(Budget, WhatIsSavedUpIsBounded) {
  Budget budget(10, 1);
  for (int request = 0; request < 100'000; ++request) budget.deposit(0.2);
  EXPECT_EQ(spend(budget, kNow), static_cast<int>(Budget::kMost));
}

TEST(Budget, WithoutARefillOnlyRequestsFillIt) {
  Budget budget(1, 0);
  EXPECT_EQ(spend(budget, kNow), 1);
  EXPECT_EQ(spend(budget, kNow + 3'600'000), 0);
  for (int request = 0; request < 50; ++request) budget.deposit(0.02);
  EXPECT_EQ(spend(budget, kNow), 1);
}

}  // namespace
}  // namespace clockwise::proxy
