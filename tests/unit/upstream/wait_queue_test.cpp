#include "upstream/wait_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace clockwise::upstream {
namespace {

TEST(WaitQueue, ServesInTheOrderOfArrival) {
  WaitQueue queue;
  std::array<WaitQueue::Place, 3> places;
  EXPECT_TRUE(queue.empty());
  for (auto& place : places) queue.join(place);
  EXPECT_EQ(queue.size(), 3U);
  for (auto& place : places) {
    EXPECT_TRUE(place.waiting());
    EXPECT_EQ(&queue.first(), &place);
    queue.leave(place);
    EXPECT_FALSE(place.waiting());
  }
  EXPECT_TRUE(queue.empty());
}

TEST(WaitQueue, AnyPlaceMayBeGivenUp) {
  for (std::size_t leaves = 0; leaves < 3; ++leaves) {
    WaitQueue queue;
    std::array<WaitQueue::Place, 3> places;
    for (auto& place : places) queue.join(place);
    queue.leave(places[leaves]);
    queue.join(places[leaves]);  // and taken again, at the end
    const std::array<std::size_t, 3> order{leaves == 0 ? 1U : 0U, leaves == 2 ? 1U : 2U, leaves};
    for (const std::size_t next : order) {
      EXPECT_EQ(&queue.first(), &places[next]) << leaves;
      queue.leave(queue.first());
    }
    EXPECT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace clockwise::upstream
