#include "cache/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/stores.h"

namespace clockwise::cache {
namespace {

using test::body_of;
using test::Caller;
using test::kKiB;
using test::Nudged;
using test::read;
using test::Sent;
using test::Waiter;
using State = Fill::State;

constexpr const char* kKey = "http://a/x";

Sent sent(const std::string& body) { return {.body = body}; }

TEST(Store, GivesBackWhatWasPut) {
  Caller caller;
  Sent page = sent("hello");
  page.head = "Content-Type: text/html\r\nETag: \"1\"\r\nX-Empty:\r\n";
  page.tags = "red green";
  page.for_authorized = true;
  caller.put(kKey, page);
  const auto found = caller.find(kKey);
  ASSERT_TRUE(found.object);
  EXPECT_FALSE(found.pass || found.probe);
  EXPECT_EQ(found.object->key(), kKey);
  EXPECT_EQ(found.object->status(), 200);
  EXPECT_EQ(found.object->head(), page.head);
  EXPECT_EQ(found.object->tags(), page.tags);
  EXPECT_EQ(found.object->selectors(), "");
  EXPECT_EQ(found.object->terms().lifetime, page.lifetime);
  EXPECT_EQ(found.object->terms().received_ms, caller.now);
  EXPECT_TRUE(found.object->terms().for_authorized);
  EXPECT_FALSE(found.object->is_marker() || found.object->made_stale());
  EXPECT_EQ(read(found.object), "hello");
  EXPECT_EQ(found.object->field("etag"), "\"1\"");
  EXPECT_EQ(found.object->field("content-type"), "text/html");
  EXPECT_EQ(found.object->field("x-empty"), "");
  EXPECT_EQ(found.object->field("etag2"), "");
  EXPECT_EQ(found.object->field("tag"), "");
  EXPECT_FALSE(caller.find("http://a/xy").object);
  EXPECT_FALSE(caller.find("http://a/").object);
  EXPECT_EQ(caller.store.stats().objects, 1U);
}

TEST(Store, ARefreshIsClaimedOnce) {
  Caller caller;
  const ObjectRef object = caller.put(kKey, sent("x"));
  EXPECT_TRUE(object->claim_refresh());
  EXPECT_FALSE(object->claim_refresh());
}

// --- fetches ------------------------------------------------------------------------------------

TEST(Store, OneFetchesAndTheOthersFollow) {
  Caller caller;
  const auto fill = caller.lead(kKey);
  EXPECT_EQ(fill->state(), State::waiting);
  auto joined = caller.join(kKey);
  EXPECT_EQ(joined.fill, fill);
  EXPECT_FALSE(joined.leads || joined.pass || joined.object);

  Waiter waiter;
  ASSERT_TRUE(fill->follow(waiter, 1));
  ASSERT_TRUE(fill->wait(waiter, State::waiting, 0));
  ASSERT_TRUE(caller.begin(*fill, sent("0123456789")));
  EXPECT_EQ(waiter.woken, 1);
  EXPECT_EQ(fill->state(), State::streaming);
  EXPECT_EQ(fill->length(), 10U);
  EXPECT_EQ(fill->object()->size(), 0U);
  EXPECT_FALSE(caller.find(kKey).object) << "it is not whole";
  EXPECT_EQ(caller.join(kKey).fill, fill) << "but it can be read";

  ASSERT_TRUE(fill->wait(waiter, State::streaming, 0));
  ASSERT_TRUE(caller.append(*fill, "01234"));
  EXPECT_EQ(waiter.woken, 2);
  EXPECT_EQ(read(fill->object()), "01234");
  ASSERT_TRUE(caller.append(*fill, "56789"));
  EXPECT_EQ(waiter.woken, 2) << "it did not wait";
  EXPECT_FALSE(fill->wait(waiter, State::streaming, 5)) << "more is there already";
  ASSERT_TRUE(fill->wait(waiter, State::streaming, 10));
  caller.complete(*fill);
  EXPECT_EQ(waiter.woken, 3);
  EXPECT_EQ(fill->state(), State::done);
  EXPECT_FALSE(fill->wait(waiter, State::streaming, 10));
  EXPECT_FALSE(fill->revalidated());
  EXPECT_EQ(caller.find(kKey).object, fill->object());
  fill->unfollow(waiter);
}

TEST(Store, FollowersAreCounted) {
  Caller caller;
  const auto fill = caller.lead(kKey);
  Nudged nudged;
  fill->fetched_by(&nudged);
  Waiter waiters[3];
  EXPECT_TRUE(fill->follow(waiters[0], 2));
  EXPECT_TRUE(fill->follow(waiters[1], 2));
  EXPECT_FALSE(fill->follow(waiters[2], 2));
  EXPECT_EQ(fill->followers(), 2U);
  fill->unfollow(waiters[0]);
  EXPECT_TRUE(fill->follow(waiters[2], 2));
  ASSERT_TRUE(fill->wait(waiters[1], State::waiting, 0));
  fill->unfollow(waiters[1]);
  EXPECT_EQ(nudged.nudged, 0);
  fill->unfollow(waiters[2]);
  EXPECT_EQ(nudged.nudged, 1) << "nobody wants it any more";
  fill->fetched_by(nullptr);
  caller.store.cut(*fill);
  EXPECT_EQ(waiters[1].woken, 0) << "it had left";
}

TEST(Store, LengthIsKnownAtTheLatestWhenItIsWhole) {
  Caller caller;
  const auto fill = caller.lead(kKey);
  ASSERT_TRUE(caller.begin(*fill, {.body = "abc", .declared = false}));
  EXPECT_EQ(fill->length(), Fill::kUnknown);
  caller.bring(*fill, sent("abc"));
  EXPECT_EQ(fill->length(), 3U);
}

TEST(Store, AFetchThatFailsOrBreaksOffKeepsNothing) {
  Caller caller;
  const ObjectRef old = caller.put(kKey, sent("old"));
  for (const bool begun : {false, true}) {
    const auto fill = caller.lead(kKey);
    Waiter waiter;
    ASSERT_TRUE(fill->follow(waiter, 1));
    if (begun) {
      ASSERT_TRUE(caller.begin(*fill, sent("new")));
      ASSERT_TRUE(caller.append(*fill, "ne"));
    }
    ASSERT_TRUE(fill->wait(waiter, fill->state(), 2));
    if (begun)
      caller.store.cut(*fill);
    else
      caller.store.fail(*fill, {.status = 504, .proxy_status = "late", .text = "too late"});
    EXPECT_EQ(waiter.woken, 1);
    EXPECT_EQ(fill->state(), begun ? State::cut : State::failed);
    if (!begun) {
      EXPECT_EQ(fill->failure().status, 504);
      EXPECT_EQ(fill->failure().text, "too late");
    }
    EXPECT_EQ(caller.find(kKey).object, old);
    const auto next = caller.lead(kKey);
    EXPECT_NE(next, fill);
    caller.store.cut(*next);
    fill->unfollow(waiter);
  }
}

TEST(Store, WhatCameMeanwhileIsTold) {
  Caller caller;
  const test::Request request;
  const Wanted wanted = caller.wanted(kKey, request);
  const ObjectRef none;
  const ObjectRef first = caller.put(kKey, sent("1"));
  EXPECT_EQ(caller.store.join(wanted, none, false, caller.now).object, first);
  EXPECT_FALSE(caller.store.join(wanted, none, false, caller.now).fill);
  const ObjectRef second = caller.put(kKey, sent("2"));
  EXPECT_EQ(caller.store.join(wanted, first, false, caller.now).object, second);
  auto joined = caller.store.join(wanted, second, false, caller.now);
  EXPECT_TRUE(joined.leads);
  EXPECT_EQ(joined.object, second) << "still what there is";
  caller.store.invalidate(kKey);
  joined = caller.store.join(wanted, second, false, caller.now);
  EXPECT_TRUE(joined.leads);
  EXPECT_FALSE(joined.object) << "not to be used, nor to be validated";
}

// RFC 9111 3.5.
TEST(Store, WhoFetchesAloneIsFollowedOnceTheAnswerAllowsIt) {
  Caller caller;
  const auto alone = caller.lead(kKey, "", true);
  const auto other = caller.lead(kKey);
  EXPECT_EQ(caller.join(kKey).fill, other);
  EXPECT_NE(caller.lead(kKey, "", true), other) << "and who must be alone follows nobody";
  caller.store.cut(*other);
  ASSERT_TRUE(caller.begin(*alone, {.body = "x", .for_authorized = true}));
  EXPECT_EQ(caller.join(kKey).fill, alone);

  const auto guarded = caller.lead("http://a/y", "", true);
  ASSERT_TRUE(caller.begin(*guarded, sent("x")));
  EXPECT_TRUE(caller.join("http://a/y").leads);
}

// --- variants -----------------------------------------------------------------------------------

TEST(Store, FindsTheVariantThatFits) {
  Caller caller;
  const Sent by_language{.body = "", .vary = "Accept-Language"};
  for (const char* language : {"de", "en", "fr"}) {
    Sent page = by_language;
    page.body = language;
    caller.put(kKey, page, std::string("Accept-Language: ") + language);
  }
  EXPECT_EQ(caller.store.stats().objects, 3U);
  for (const char* language : {"de", "en", "fr"})
    EXPECT_EQ(read(caller.find(kKey, std::string("Accept-Language: ") + language).object),
              language);
  for (const char* lines : {"Accept-Language: it", ""}) {
    const auto found = caller.find(kKey, lines);
    EXPECT_FALSE(found.object) << lines;
    EXPECT_TRUE(found.other) << lines;
  }
  EXPECT_FALSE(caller.find("http://a/other").other);
}

TEST(Store, OfThoseThatFitTheNewestIsFound) {
  Caller caller;
  caller.put(kKey, {.body = "any"});
  caller.put(kKey, {.body = "a=1", .vary = "A"}, "A: 1");
  caller.put(kKey, {.body = "b=1", .vary = "B"}, "B: 1");
  EXPECT_EQ(read(caller.find(kKey, "A: 1\nB: 1").object), "b=1");
  EXPECT_EQ(read(caller.find(kKey, "A: 1").object), "a=1");
  EXPECT_EQ(read(caller.find(kKey, "C: 1").object), "any");
}

TEST(Store, TheSameVariantIsReplaced) {
  Caller caller;
  caller.put(kKey, {.body = "a1 old", .vary = "A"}, "A: 1");
  caller.put(kKey, {.body = "a2", .vary = "A"}, "A: 2");
  caller.put(kKey, {.body = "a1 new", .vary = "A"}, "A: 1");
  EXPECT_EQ(caller.store.stats().objects, 2U);
  EXPECT_EQ(read(caller.find(kKey, "A: 1").object), "a1 new");
  EXPECT_EQ(read(caller.find(kKey, "A: 2").object), "a2");
  EXPECT_EQ(caller.store.stats().evictions, Stats{}.evictions);
}

// Two may fetch at once, each alone; the one whose answer is older may be done later.
TEST(Store, AnOlderAnswerDoesNotReplaceANewerOne) {
  Caller caller;
  const auto early = caller.lead(kKey, "", true);
  ASSERT_TRUE(caller.begin(*early, sent("early")));
  caller.now += 1000;
  caller.put(kKey, sent("late"));
  caller.bring(*early, sent("early"));
  EXPECT_EQ(read(caller.find(kKey).object), "late");
  EXPECT_EQ(read(early->object()), "early") << "those who read it have it whole";
  EXPECT_EQ(caller.store.stats().objects, 1U);
}

TEST(Store, EachVariantIsFetchedOnce) {
  Caller caller;
  caller.put(kKey, {.body = "old", .vary = "A"}, "A: 0");
  std::vector<std::shared_ptr<Fill>> fills;
  for (int i = 1; i <= 10; ++i) fills.push_back(caller.lead(kKey, "A: " + std::to_string(i)));
  for (int i = 1; i <= 10; ++i)
    EXPECT_EQ(caller.join(kKey, "A: " + std::to_string(i)).fill, fills[i - 1]);
  // Nothing is known of another key: all wait for the same, until its head tells them apart.
  const auto fill = caller.lead("http://a/y", "A: 1");
  EXPECT_EQ(caller.join("http://a/y", "A: 2").fill, fill);
  ASSERT_TRUE(caller.begin(*fill, {.body = "y", .vary = "A"}, "A: 1"));
  EXPECT_EQ(caller.join("http://a/y", "A: 1").fill, fill);
  const auto second = caller.lead("http://a/y", "A: 2");
  EXPECT_EQ(caller.join("http://a/y", "A: 2").fill, second);
}

TEST(Store, VariantsAreLimitedAndTheOldestLeaves) {
  Caller caller;
  caller.variants = 3;
  const auto line = [](int i) { return "A: " + std::to_string(i); };
  const auto put = [&](int i) {
    caller.put(kKey, {.body = std::to_string(i), .vary = "A"}, line(i));
  };
  const auto which = [&] {
    std::vector<int> in;
    for (int i = 0; i < 10; ++i)
      if (caller.find(kKey, line(i)).object) in.push_back(i);
    return in;
  };
  using testing::ElementsAre;
  for (int i = 0; i < 5; ++i) put(i);
  EXPECT_THAT(which(), ElementsAre(2, 3, 4));
  put(2);
  put(5);
  EXPECT_THAT(which(), ElementsAre(2, 4, 5)) << "one that was fetched anew is young";
  caller.variants = 1;
  put(6);
  EXPECT_THAT(which(), ElementsAre(6)) << "the limit has become lower";
  EXPECT_EQ(caller.store.stats().objects, 1U);
  EXPECT_EQ(caller.store.stats().evictions[0], 6U);
}

// --- what cannot be shared ----------------------------------------------------------------------

TEST(Store, WhatCannotBeSharedIsRememberedForAWhile) {
  Caller caller;
  const auto fill = caller.lead(kKey);
  Waiter waiter;
  ASSERT_TRUE(fill->follow(waiter, 1));
  ASSERT_TRUE(fill->wait(waiter, State::waiting, 0));
  caller.store.pass(*fill, 5'000, caller.now);
  EXPECT_EQ(waiter.woken, 1);
  EXPECT_EQ(fill->state(), State::passed);
  EXPECT_EQ(caller.store.stats().objects, 0U) << "it is no answer";

  const std::int64_t begun = caller.now;
  struct At {
    int ms;
    bool pass, probe;
  };
  for (const At& at :
       {At{0, true, true}, At{1, true, false}, At{4999, true, false}, At{5000, false, false}}) {
    caller.now = begun + at.ms;
    const auto found = caller.find(kKey);
    EXPECT_EQ(found.pass, at.pass) << at.ms;
    EXPECT_EQ(found.probe, at.probe) << at.ms;
    EXPECT_FALSE(found.object || found.other);
  }
  EXPECT_TRUE(caller.join(kKey).leads) << "it is forgotten";
}

TEST(Store, AMarkerThatNobodyAskedForIsNotProbedOnceItIsOver) {
  Caller caller;
  caller.store.pass(*caller.lead(kKey), 5'000, caller.now);
  caller.now += 6'000;
  const auto found = caller.find(kKey);
  EXPECT_FALSE(found.pass);
  EXPECT_FALSE(found.probe) << "an ordinary fetch, which others may follow";
}

TEST(Store, NobodyWaitsForWhatCannotBeShared) {
  Caller caller;
  caller.store.pass(*caller.lead(kKey), 5'000, caller.now);
  const auto joined = caller.join(kKey);
  EXPECT_TRUE(joined.pass);
  EXPECT_FALSE(joined.fill);
  EXPECT_TRUE(caller.join(kKey, "", true).leads) << "but one sees whether it is still so";
  EXPECT_FALSE(caller.join("http://a/y").pass);
}

TEST(Store, ACacheableAnswerEndsThePassing) {
  Caller caller;
  caller.store.pass(*caller.lead(kKey), 5'000, caller.now);
  const auto probe = caller.lead(kKey, "", true);
  ASSERT_TRUE(caller.begin(*probe, sent("x")));
  EXPECT_TRUE(caller.find(kKey).pass);
  caller.bring(*probe, sent("x"));
  EXPECT_FALSE(caller.find(kKey).pass);
  EXPECT_EQ(read(caller.find(kKey).object), "x");
  EXPECT_EQ(caller.store.stats().evictions, Stats{}.evictions) << "no answer left";
}

TEST(Store, AnAnswerThatStillCannotBeSharedIsProbedAgain) {
  Caller caller;
  caller.store.pass(*caller.lead(kKey), 60'000, caller.now);
  const std::uint64_t bytes = caller.store.stats().bytes;
  for (int i = 0; i < 3; ++i) {
    caller.now += 1000;
    EXPECT_TRUE(caller.find(kKey).probe);
    EXPECT_FALSE(caller.find(kKey).probe);
    caller.store.pass(*caller.lead(kKey, "", true), 60'000, caller.now);
    EXPECT_EQ(caller.store.stats().bytes, bytes) << "one marker each key";
  }
}

TEST(Store, AProbeThatToldNothingIsFollowedByAnother) {
  Caller caller;
  caller.store.pass(*caller.lead(kKey), 60'000, caller.now);
  const auto probe = [&] {
    EXPECT_TRUE(caller.find(kKey).probe);
    EXPECT_FALSE(caller.find(kKey).probe) << "one at a time";
    return caller.lead(kKey, "", true);
  };
  caller.store.fail(*probe(), {});
  caller.store.cut(*probe());
  caller.store.pass(*probe(), 0, caller.now);
  const auto purged = probe();
  ASSERT_TRUE(caller.begin(*purged, {.body = "x", .tags = "red"}));
  caller.store.purge({.scope = PurgeScope::tag, .text = "red"});
  caller.bring(*purged, sent("x"));
  (void)probe();
}

TEST(Store, NothingIsRememberedWhereItIsNotAskedFor) {
  Caller caller;
  caller.store.pass(*caller.lead(kKey), 0, caller.now);
  EXPECT_FALSE(caller.find(kKey).pass);
  EXPECT_EQ(caller.store.stats().bytes, caller.bytes_at_first);
}

TEST(Store, WhatWasInvalidatedMeanwhileIsNotRemembered) {
  Caller caller;
  const auto fill = caller.lead(kKey);
  caller.store.invalidate(kKey);
  caller.store.pass(*fill, 5'000, caller.now);
  EXPECT_EQ(fill->state(), State::passed);
  EXPECT_FALSE(caller.find(kKey).pass) << "it may be another answer now";
}

TEST(Store, AStoredAnswerIsFoundBesideTheMarker) {
  Caller caller;
  const ObjectRef object = caller.put(kKey, {.body = "x", .vary = "A"}, "A: 1");
  caller.store.pass(*caller.lead(kKey, "A: 2"), 5'000, caller.now);
  EXPECT_EQ(caller.find(kKey, "A: 1").object, object);
  EXPECT_TRUE(caller.find(kKey, "A: 2").pass);
}

// --- invalidation -------------------------------------------------------------------------------

TEST(Store, InvalidationTakesAllVariantsOfAKey) {
  Caller caller;
  caller.put(kKey, {.body = "1", .vary = "A"}, "A: 1");
  caller.put(kKey, {.body = "2", .vary = "A"}, "A: 2");
  caller.store.pass(*caller.lead(kKey, "A: 3"), 5'000, caller.now);
  caller.put("http://a/y", sent("y"));
  EXPECT_EQ(caller.store.invalidate(kKey), 2U) << "the marker is no answer";
  EXPECT_FALSE(caller.find(kKey, "A: 1").object);
  EXPECT_FALSE(caller.find(kKey, "A: 2").other);
  EXPECT_FALSE(caller.find(kKey).pass);
  EXPECT_TRUE(caller.find("http://a/y").object);
  EXPECT_EQ(caller.store.invalidate(kKey), 0U);
  EXPECT_EQ(caller.store.stats().objects, 1U);
  EXPECT_EQ(caller.store.stats().evictions[3], 2U);
}

TEST(Store, InvalidationCountsForWhatIsBeingFetched) {
  for (const bool begun : {false, true}) {
    Caller caller;
    const auto fill = caller.lead(kKey);
    if (begun) {
      ASSERT_TRUE(caller.begin(*fill, sent("old")));
    }
    caller.store.invalidate(kKey);
    const auto next = caller.lead(kKey);
    EXPECT_NE(next, fill) << "who asks now does not get it";
    if (!begun) {
      ASSERT_TRUE(caller.begin(*fill, sent("old")));
    }
    caller.bring(*fill, sent("old"));
    EXPECT_EQ(fill->state(), State::done) << "those who asked before do";
    EXPECT_FALSE(caller.find(kKey).object);
    ASSERT_TRUE(caller.begin(*next, sent("new")));
    caller.bring(*next, sent("new"));
    EXPECT_EQ(read(caller.find(kKey).object), "new");
  }
}

// --- texts --------------------------------------------------------------------------------------

TEST(Store, TextsThatAreTooLargeAreRefusedAndTheFetchCanStillPass) {
  Caller caller;
  const std::string most(0xffff, 'x'), more(0x10000, 'x');
  const auto refused = [&](const Sent& what, const std::string& key) {
    const auto fill = caller.lead(key);
    const bool began = caller.begin(*fill, what);
    EXPECT_EQ(fill->state(), began ? State::streaming : State::waiting);
    caller.store.pass(*fill, 0, caller.now);
    return !began;
  };
  EXPECT_FALSE(refused({.tags = most, .head = most}, most));
  EXPECT_TRUE(refused({.head = more}, kKey));
  EXPECT_TRUE(refused({.tags = more}, kKey));
  EXPECT_TRUE(refused({}, more));
  EXPECT_EQ(caller.store.stats().rejected, 3U);
  EXPECT_EQ(caller.bytes_once_purged(), caller.bytes_at_first);
}

}  // namespace
}  // namespace clockwise::cache
