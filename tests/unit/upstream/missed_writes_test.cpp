#include "upstream/missed_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace clockwise::upstream {
namespace {

using testing::UnorderedElementsAre;

TEST(MissedWrites, EachKeyOnce) {
  MissedWrites missed;
  for (const char* key : {"a", "b", "a"}) missed.add(key);
  const MissedWrites::Taken taken = missed.take();
  EXPECT_FALSE(taken.all);
  EXPECT_THAT(taken.keys, UnorderedElementsAre("a", "b"));
  EXPECT_TRUE(missed.take().none());
}

TEST(MissedWrites, WhatCouldNotBeDeletedIsThereAgainBesideWhatCameMeanwhile) {
  MissedWrites missed;
  missed.add("a");
  MissedWrites::Taken taken = missed.take();
  missed.add("b");
  missed.put_back(std::move(taken));
  EXPECT_THAT(missed.take().keys, UnorderedElementsAre("a", "b"));
}

TEST(MissedWrites, PastTheirRoomAllCountsAsOld) {
  MissedWrites missed;
  for (std::size_t i = 0; i * 250 <= MissedWrites::kMostBytes; ++i)
    missed.add(std::to_string(i) + std::string(250, 'k'));
  missed.add("one more");
  MissedWrites::Taken taken = missed.take();
  EXPECT_TRUE(taken.all);
  EXPECT_TRUE(taken.keys.empty());
  missed.add("a");
  missed.put_back(std::move(taken));
  EXPECT_TRUE(missed.take().all);
}

TEST(MissedWrites, AFlushIsAllThatTheServerHolds) {
  MissedWrites missed;
  missed.add("a");
  missed.add_all();
  missed.add("b");
  EXPECT_TRUE(missed.take().all);
}

}  // namespace
}  // namespace clockwise::upstream
