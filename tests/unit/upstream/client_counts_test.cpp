#include "upstream/client_counts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace clockwise::upstream {
namespace {

TEST(ClientCounts, AdmitsUpToTheLimitOfEachAddress) {
  ClientCounts counts;
  EXPECT_TRUE(counts.admit("192.0.2.1", 2));
  EXPECT_TRUE(counts.admit("192.0.2.1", 2));
  EXPECT_FALSE(counts.admit("192.0.2.1", 2));
  EXPECT_TRUE(counts.admit("2001:db8::1", 2));
  counts.leave("192.0.2.1");
  EXPECT_TRUE(counts.admit("192.0.2.1", 2));
}

TEST(ClientCounts, ALowerLimitRefusesUntilEnoughHaveLeft) {
  ClientCounts counts;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(counts.admit("a", 3));
  counts.leave("a");
  EXPECT_FALSE(counts.admit("a", 1));
  counts.leave("a");
  counts.leave("a");
  EXPECT_TRUE(counts.admit("a", 1));
}

TEST(ClientCounts, ForgetsWhoHasLeft) {
  ClientCounts counts;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(counts.admit(std::to_string(i), 1));
  for (int i = 0; i < 1000; ++i) counts.leave(std::to_string(i));
  EXPECT_EQ(counts.clients(), 0u);
}

TEST(ClientCounts, HoldsOverThreads) {
  ClientCounts counts;
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) admitted += counts.admit("a", 1500) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 1500);
}

}  // namespace
}  // namespace clockwise::upstream
