#include "io/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace clockwise::io {
namespace {

using namespace std::chrono_literals;

// A tick under way when the loop is told to stop must not begin the next one: the thread would
// never end.
TEST(Loop, ATickThatIsUnderWayEndsWithTheStop) {
  Loop loop;
  int ticks = 0;
  loop.start_ticking([&](std::uint64_t) {
    ++ticks;
    loop.stop_ticking();
  });
  loop.io.run_for(30s);
  EXPECT_TRUE(loop.io.stopped());
  EXPECT_EQ(ticks, 1);
}

TEST(Loop, TheDeadIsDestroyedOnceItIsQuiet) {
  struct Dying final : Mortal {
    Dying(bool& is_quiet, bool& is_gone) : quiet_(is_quiet), gone_(is_gone) {}
    ~Dying() override { gone_ = true; }
    [[nodiscard]] bool quiet() const noexcept override { return quiet_; }
    bool& quiet_;
    bool& gone_;
  };
  bool quiet = false;
  bool gone = false;
  Loop loop;
  loop.bury(std::make_unique<Dying>(quiet, gone));
  loop.io.run_for(10s);
  EXPECT_FALSE(gone);
  quiet = true;
  loop.want_end_of_turn();
  loop.io.restart();
  loop.io.run_for(10s);
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace clockwise::io
