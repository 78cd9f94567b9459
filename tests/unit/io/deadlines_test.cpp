#include "io/deadlines.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace clockwise::io {
namespace {

struct Timer final : Deadlines::Node {
  void on_deadline() override {
    ++fired;
    if (then) then();
  }
  int fired = 0;
  std::function<void()> then;
};

TEST(Deadlines, FireOnceAndWithinOneTick) {
  Deadlines deadlines;
  deadlines.start(1'000);
  Timer timer;
  deadlines.set(timer, 1'234);
  deadlines.advance(1'233);
  EXPECT_EQ(timer.fired, 0);
  deadlines.advance(1'234 + Deadlines::kTick);
  EXPECT_EQ(timer.fired, 1);
  deadlines.advance(100'000);
  EXPECT_EQ(timer.fired, 1);
}

TEST(Deadlines, MovedLaterFiresLater) {
  Deadlines deadlines;
  Timer timer;
  deadlines.set(timer, 200);
  deadlines.set(timer, 5'000);
  deadlines.advance(4'950);
  EXPECT_EQ(timer.fired, 0);
  deadlines.advance(5'050);
  EXPECT_EQ(timer.fired, 1);
}

TEST(Deadlines, MovedNearerFiresSooner) {
  Deadlines deadlines;
  Timer timer;
  deadlines.set(timer, 60'000);
  deadlines.set(timer, 300);
  deadlines.advance(350);
  EXPECT_EQ(timer.fired, 1);
}

TEST(Deadlines, BeyondTheWheelIsNotForgotten) {
  Deadlines deadlines;
  Timer timer;
  deadlines.set(timer, 3'600'000);
  deadlines.advance(3'599'900);
  EXPECT_EQ(timer.fired, 0);
  deadlines.advance(3'600'100);
  EXPECT_EQ(timer.fired, 1);
}

TEST(Deadlines, ClearedNeverFires) {
  Deadlines deadlines;
  Timer timer;
  deadlines.set(timer, 200);
  deadlines.clear(timer);
  deadlines.advance(100'000);
  EXPECT_EQ(timer.fired, 0);
}

TEST(Deadlines, OneMayDestroyAnotherThatIsDue) {
  Deadlines deadlines;
  auto victim = std::make_unique<Timer>();
  Timer first;
  first.then = [&] { victim.reset(); };
  deadlines.set(first, 200);
  deadlines.set(*victim, 200);
  deadlines.advance(1'000);
  EXPECT_EQ(first.fired, 1);
  EXPECT_EQ(victim, nullptr);
}

TEST(Deadlines, OneMaySetItselfAgain) {
  Deadlines deadlines;
  Timer timer;
  timer.then = [&] {
    if (timer.fired < 3) deadlines.set(timer, timer.fired * 1'000);
  };
  deadlines.set(timer, 100);
  deadlines.advance(10'000);
  EXPECT_EQ(timer.fired, 3);
}

// However a deadline is moved about, it never fires early, and at most one tick late.
RC_GTEST_PROP(Deadlines, NeverEarlyNeverLate, ()) {
  Deadlines deadlines;
  Timer timer;
  Milliseconds now = 0;
  Milliseconds due = Deadlines::kNever;
  int expected = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 90'000), rc::gen::inRange(0, 3'000)));
  for (const auto& [ahead, pass] : steps) {
    due = now + static_cast<Milliseconds>(ahead) + 1;
    deadlines.set(timer, due);
    now += static_cast<Milliseconds>(pass);
    deadlines.advance(now);
    if (timer.fired > expected) {
      RC_ASSERT(due <= now);
      expected = timer.fired;
    } else {
      RC_ASSERT(due + Deadlines::kTick > now);
    }
  }
}

}  // namespace
}  // namespace clockwise::io
