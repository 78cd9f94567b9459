// A bound for calls that have none.
#include "cli/within.h"

#include <gtest/gtest.h>

#include <memory>

namespace clockwise::cli {
namespace {

using namespace std::chrono_literals;

TEST(Within, GivesWhatTheCallReturns) {
  EXPECT_EQ(within(1h, [] { return std::make_unique<int>(7); }).value_or(nullptr) != nullptr, true);
  EXPECT_EQ(within(1h, [] { return 7; }), 7);
}

TEST(Within, WaitsNoLongerForACallThatHangs) {
  std::promise<void> release, ended;
  const auto hangs = [wait = release.get_future().share(), &ended] {
    wait.wait();
    ended.set_value();
    return 7;
  };
  EXPECT_EQ(within(10ms, hangs), std::nullopt);
  release.set_value();  // it goes on, and its result is nobody's
  ended.get_future().wait();
}

}  // namespace
}  // namespace clockwise::cli
