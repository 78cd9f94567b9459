// What another store had, given to those who wait for a fetch, or kept beside it.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "support/stores.h"

namespace clockwise::cache {
namespace {

using test::Caller;
using test::Request;
using test::Waiter;

class Adopt : public testing::Test {
 protected:
  ObjectRef adopt(Fill& fill, std::string_view body, std::int64_t received,
                  std::string_view tags = {}) {
    const Draft draft{.head = "ETag: \"1\"\r\n",
                      .tags = tags,
                      .selectors = {},
                      .terms = {.received_ms = received, .lifetime = 1, .has_validator = true},
                      .length = body.size()};
    const std::array pieces{body.substr(0, body.size() / 2), body.substr(body.size() / 2)};
    return caller.store.adopt(fill, draft, pieces, caller.variants, caller.now);
  }

  Caller caller;
};

TEST_F(Adopt, AStaleAnswerIsKeptAndOfferedAndTheFetchGoesOn) {
  const auto fill = caller.lead("k");
  Waiter waiter;
  ASSERT_TRUE(fill->follow(waiter, 10));
  ASSERT_TRUE(fill->wait(waiter, Fill::State::waiting, 0));
  const ObjectRef object = adopt(*fill, "hello", caller.now - 5'000);
  ASSERT_TRUE(object);
  EXPECT_EQ(test::read(object), "hello");
  EXPECT_EQ(waiter.woken, 1);
  EXPECT_EQ(fill->state(), Fill::State::waiting);
  EXPECT_TRUE(fill->stale() == object);
  EXPECT_TRUE(caller.find("k").object == object);
  EXPECT_FALSE(fill->found());

  EXPECT_TRUE(caller.join("k").fill == fill) << "nobody waits for what is stale";
  caller.confirm(*fill, object, {.lifetime = 100});
  EXPECT_EQ(test::read(fill->object()), "hello");
  EXPECT_TRUE(fill->revalidated());
  fill->unfollow(waiter);
}

TEST_F(Adopt, WhatWasPurgedSinceTheFetchBeganIsNotKept) {
  const PurgeRule rules[] = {{.scope = PurgeScope::url, .text = "k"},
                             {.scope = PurgeScope::prefix, .text = "k"},
                             {.scope = PurgeScope::tag, .text = "news"},
                             {.scope = PurgeScope::all, .text = {}}};
  for (const PurgeRule& rule : rules) {
    const auto fill = caller.lead("k");
    caller.store.purge(rule);
    EXPECT_FALSE(adopt(*fill, "hello", caller.now - 5'000, "news"));
    EXPECT_FALSE(fill->stale());
    EXPECT_FALSE(caller.find("k").object);
    caller.store.cut(*fill);
  }
  EXPECT_EQ(caller.bytes_once_purged(), caller.bytes_at_first);
}

TEST_F(Adopt, ASoftPurgeSinceThenMakesItStale) {
  const auto fill = caller.lead("k");
  caller.store.purge({.scope = PurgeScope::url, .text = "k", .soft = true});
  const ObjectRef object = adopt(*fill, "hello", caller.now);
  ASSERT_TRUE(object);
  EXPECT_TRUE(object->made_stale());
  caller.store.cut(*fill);
}

TEST_F(Adopt, WhatIsOlderThanTheOneAtHandIsNot) {
  const ObjectRef mine = caller.put("k", {.body = "mine"});
  caller.now += 1'000;
  const auto fill = caller.lead("k");
  EXPECT_FALSE(adopt(*fill, "theirs", caller.now - 5'000));
  EXPECT_TRUE(caller.find("k").object == mine);
  EXPECT_TRUE(adopt(*fill, "theirs", caller.now));
  EXPECT_EQ(test::read(caller.find("k").object), "theirs");
  caller.store.cut(*fill);
}

TEST_F(Adopt, WhatHasNoRoomIsNot) {
  const auto fill = caller.lead("k");
  EXPECT_FALSE(adopt(*fill, std::string(caller.store.largest() + 1, 'x'), caller.now));
  EXPECT_FALSE(caller.find("k").object);
  EXPECT_EQ(fill->state(), Fill::State::waiting);
  caller.store.cut(*fill);
  EXPECT_EQ(caller.bytes_once_purged(), caller.bytes_at_first);
}

TEST_F(Adopt, AFillTellsThatItWasFound) {
  const auto fill = caller.lead("k");
  ASSERT_TRUE(caller.store.begin(
      *fill, {.head = {}, .tags = {}, .selectors = {}, .terms = {}, .found = true}, caller.now));
  EXPECT_TRUE(fill->found());
  EXPECT_TRUE(caller.store.complete(*fill, caller.variants));
}

TEST_F(Adopt, WhoeverFillsIsToldWhetherItIsKept) {
  const auto fill = caller.lead("k");
  ASSERT_TRUE(caller.begin(*fill, {.body = "x"}));
  ASSERT_TRUE(caller.append(*fill, "x"));
  caller.store.purge({.scope = PurgeScope::url, .text = "k"});
  EXPECT_FALSE(caller.store.complete(*fill, caller.variants));

  const ObjectRef old = caller.put("k", {.body = "x"});
  const auto second = caller.lead("k");
  caller.store.invalidate("k");
  EXPECT_FALSE(caller.store.confirm(*second, old,
                                    {.head = {}, .tags = {}, .selectors = {}, .terms = {}},
                                    caller.variants, caller.now));
}

}  // namespace
}  // namespace clockwise::cache
