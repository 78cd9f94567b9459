#include "io/slabs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace clockwise::io {
namespace {

TEST(Slabs, ObjectsNeverOverlapWhateverTheOrder) {
  for (const std::size_t size : {1UL, 24UL, 700UL, 4000UL}) {
    Slabs slabs(size);
    std::vector<unsigned char*> held;
    std::mt19937 random(1);  // NOLINT: the same every time
    for (int step = 0; step < 20'000; ++step) {
      if (held.empty() || random() % 5 < 3) {
        auto* object = static_cast<unsigned char*>(slabs.take());
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(object) % alignof(std::max_align_t), 0u);
        std::memset(object, static_cast<int>(held.size() % 251), size);
        object[0] = static_cast<unsigned char>(reinterpret_cast<std::uintptr_t>(object) >> 4U);
        held.push_back(object);
      } else {
        const std::size_t i = random() % held.size();
        // Nobody has written here.
        ASSERT_EQ(held[i][0],
                  static_cast<unsigned char>(reinterpret_cast<std::uintptr_t>(held[i]) >> 4U));
        Slabs::give_back(held[i]);
        held[i] = held.back();
        held.pop_back();
      }
    }
    ASSERT_EQ(std::set(held.begin(), held.end()).size(), held.size());
    for (unsigned char* object : held) Slabs::give_back(object);
  }
}

TEST(Slabs, AGivenPlaceIsUsedAgain) {
  Slabs slabs(100);
  void* first = slabs.take();
  Slabs::give_back(first);
  EXPECT_EQ(slabs.take(), first);
  Slabs::give_back(first);
}

struct Counted : InSlabs {
  explicit Counted(bool fail) {
    if (fail) throw std::runtime_error("no");
  }
  char octets[200];
};

TEST(Slabs, AConstructorThatThrowsGivesItsPlaceBack) {
  Slabs slabs(sizeof(Counted));
  auto* one = new (slabs) Counted(false);
  delete one;
  EXPECT_THROW(new (slabs) Counted(true), std::runtime_error);
  auto* other = new (slabs) Counted(false);
#if !CLOCKWISE_ADDRESS_SANITIZER  // which lends no memory twice, and sees what was not given back
  EXPECT_EQ(other, one);
#endif
  delete other;
}

}  // namespace
}  // namespace clockwise::io
