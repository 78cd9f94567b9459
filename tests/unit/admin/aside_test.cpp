#include "admin/aside.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>
#include <vector>

namespace clockwise::admin {
namespace {

TEST(Aside, DoesOnePieceAfterTheOtherOnAnotherThread) {
  std::vector<int> done;
  std::promise<std::thread::id> last;
  Aside aside;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(aside.take([&done, i] { done.push_back(i); }));
  ASSERT_TRUE(aside.take([&] { last.set_value(std::this_thread::get_id()); }));
  EXPECT_NE(last.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(done, (std::vector{0, 1, 2}));
}

TEST(Aside, TakesNoMoreThanItMayUntilSomeIsDone) {
  std::latch go{1};
  std::promise<void> all_done;
  Aside aside;
  ASSERT_TRUE(aside.take([&] { go.wait(); }));
  for (std::size_t i = 2; i < Aside::kMost; ++i) ASSERT_TRUE(aside.take([] {}));
  ASSERT_TRUE(aside.take([&] { all_done.set_value(); }));
  EXPECT_FALSE(aside.take([] { ADD_FAILURE() << "was refused"; }));
  EXPECT_FALSE(aside.take([] { ADD_FAILURE() << "was refused"; }));
  go.count_down();
  all_done.get_future().get();
  while (!aside.take([] {})) std::this_thread::yield();  // the last piece is being put away
}

TEST(Aside, TheEndWaitsForThePieceUnderWayAndLetsGoOfTheRest) {
  std::latch begun{1}, go{1};
  bool ended = false;
  auto held = std::make_shared<int>();
  auto aside = std::make_unique<Aside>();
  ASSERT_TRUE(aside->take([&] {
    begun.count_down();
    go.wait();
    ended = true;
  }));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(aside->take([held] {}));
  begun.wait();
  std::thread end([&] { aside.reset(); });
  go.count_down();
  end.join();
  EXPECT_TRUE(ended);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace clockwise::admin
