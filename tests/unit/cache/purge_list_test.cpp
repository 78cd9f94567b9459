#include "cache/purge_list.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "cache/purge_log.h"

namespace clockwise::cache {
namespace {

using Effect = PurgeList::Effect;
using enum PurgeScope;

constexpr std::int64_t kNow = 1'700'000'000'000;
constexpr std::int64_t kLongAfter = kNow + 60'000;
constexpr std::string_view kKey = "http://a/x/1";

PurgeList list_of(std::initializer_list<PurgeRule> rules) {
  PurgeList list;
  for (const PurgeRule& rule : rules) list.add(rule, kNow);
  return list;
}

TEST(PurgeList, NamesWhatWasAskedForBefore) {
  const struct {
    PurgeRule rule;
    bool named;
  } rows[] = {
      {{.scope = url, .text = "http://a/x/1"}, true},
      {{.scope = url, .text = "http://a/x"}, false},
      {{.scope = prefix, .text = "http://a/x"}, true},
      {{.scope = prefix, .text = "http://b"}, false},
      {{.scope = host, .text = "a"}, true},
      {{.scope = host, .text = "b"}, false},
      {{.scope = PurgeScope::tag, .text = "news"}, true},
      {{.scope = PurgeScope::tag, .text = "new"}, false},
      {{.scope = all, .text = {}}, true},
  };
  for (const auto& row : rows) {
    const PurgeList list = list_of({row.rule});
    EXPECT_EQ(list.on(kKey, "news sport", kNow - 1), row.named ? Effect::gone : Effect::none);
    EXPECT_EQ(list.on(kKey, "news sport", kLongAfter), Effect::none);
  }
}

TEST(PurgeList, ASoftRuleOnlyMakesStale) {
  PurgeList list = list_of({{.scope = url, .text = std::string(kKey), .soft = true}});
  EXPECT_EQ(list.on(kKey, "", kNow - 1), Effect::stale);
  list.add({.scope = host, .text = "a"}, kNow + 10);
  EXPECT_EQ(list.on(kKey, "", kNow - 1), Effect::gone);
  list.add({.scope = url, .text = std::string(kKey), .soft = true}, kNow + 20);
  EXPECT_EQ(list.on(kKey, "", kNow - 1), Effect::gone);
}

// Another clock may be late by so much.
TEST(PurgeList, AllowsForTheClocksOfOthers) {
  const PurgeList list = list_of({{.scope = all, .text = {}}});
  EXPECT_EQ(list.on(kKey, "", kNow + PurgeList::kSkew - 1), Effect::gone);
  EXPECT_EQ(list.on(kKey, "", kNow + PurgeList::kSkew), Effect::none);
}

TEST(PurgeList, WhatOneFetchedAfterOnesOwnPurgeIsSeenAsThat) {
  PurgeList mine;
  const std::int64_t time = mine.add({.scope = host, .text = "a"}, kNow);
  EXPECT_EQ(mine.as_seen(kKey, "", time - 1), time - 1) << "it was asked for before";
  EXPECT_EQ(mine.as_seen("http://b/", "", time), time) << "it is not named";
  const std::int64_t seen = mine.as_seen(kKey, "", time);
  EXPECT_EQ(mine.on(kKey, "", seen), Effect::none);
  EXPECT_EQ(mine.on(kKey, "", time), Effect::gone);

  PurgeList theirs;
  (void)theirs.merge(mine);
  EXPECT_EQ(theirs.on(kKey, "", seen), Effect::none);
  EXPECT_EQ(theirs.as_seen(kKey, "", time), time) << "whose clock it was is not known";
  mine.add({.scope = host, .text = "a"}, kNow);
  EXPECT_EQ(mine.on(kKey, "", seen), Effect::gone) << "a purge after it";
}

TEST(PurgeList, EachRuleOfAProxyIsLaterThanTheOneBefore) {
  PurgeList list;
  const std::int64_t first = list.add({.scope = host, .text = "a"}, kNow);
  const std::int64_t second = list.add({.scope = host, .text = "b"}, kNow);
  const std::int64_t third = list.add({.scope = host, .text = "c"}, kNow - 5'000);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST(PurgeList, ANewerRuleTakesThePlaceOfWhatItCovers) {
  PurgeList list = list_of({{.scope = host, .text = "a"}, {.scope = host, .text = "a"}});
  EXPECT_EQ(list.rules().size(), 1U);
  list.add({.scope = host, .text = "a", .soft = true}, kNow + 1);
  EXPECT_EQ(list.rules().size(), 2U) << "a soft one does not";
  list.add({.scope = all, .text = {}}, kNow + 2);
  EXPECT_EQ(list.rules().size(), 1U);
}

TEST(PurgeList, MergingTellsWhatIsNew) {
  PurgeList a = list_of({{.scope = host, .text = "a"}});
  PurgeList b = list_of({{.scope = host, .text = "b"}, {.scope = prefix, .text = "c"}});
  EXPECT_EQ(a.merge(b).size(), 2U);
  EXPECT_TRUE(a.merge(b).empty());
  EXPECT_EQ(b.merge(a).size(), 1U);
  EXPECT_EQ(a.pack(), b.pack());
  a.add({.scope = all, .text = {}}, kLongAfter);
  EXPECT_TRUE(a.merge(b).empty()) << "what is covered is not new";
}

TEST(PurgeList, IsReadAsItWasPacked) {
  PurgeList list = list_of({{.scope = host, .text = "a"}, {.scope = PurgeScope::tag, .text = "t"}});
  list.add({.scope = url, .text = std::string("http://x/\0y", 11), .soft = true}, kNow);
  const std::string packed = list.pack();
  const auto read = PurgeList::unpack(packed);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rules(), list.rules());
  EXPECT_EQ(read->pack(), packed);
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(PurgeList::unpack(packed.substr(0, size))) << size;
  for (std::size_t at = 0; at < packed.size(); ++at) {
    std::string bad = packed;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(PurgeList::unpack(bad)) << at;
  }
  EXPECT_TRUE(PurgeList::unpack(PurgeList().pack())->empty());
}

TEST(PurgeList, HasAnEnd) {
  PurgeList list;
  list.add({.scope = PurgeScope::tag, .text = "first"}, kNow);
  for (int i = 0; i < 9000; ++i)
    list.add({.scope = url, .text = "http://a/" + std::to_string(i) + std::string(40, 'x')},
             kNow + 100 + i);
  EXPECT_LE(list.pack().size(), PurgeList::kMostOctets);
  EXPECT_EQ(list.rules().front().rule.text, "first") << "URLs go first";
  EXPECT_GT(list.forgotten_ms(), kNow + 100);
  EXPECT_EQ(list.on("http://b/", "first", kNow - 1), Effect::gone);
  EXPECT_EQ(list.on("http://b/", "", kNow - 1), Effect::none);

  for (int i = 0; i < 9000; ++i)
    list.add({.scope = PurgeScope::tag, .text = std::to_string(i) + std::string(40, 'x')},
             kNow + 10'000 + i);
  EXPECT_LE(list.pack().size(), PurgeList::kMostOctets);
  EXPECT_EQ(list.on("http://b/", "", kNow - 1), Effect::gone) << "all that old";
  EXPECT_EQ(list.on("http://b/", "", kLongAfter), Effect::none);
}

TEST(PurgeList, ListsOfWhichOneHasForgottenBecomeEqual) {
  PurgeList small = list_of({{.scope = url, .text = "http://a/old"}});
  PurgeList large = small;
  for (int i = 0; i < 9000; ++i)
    large.add({.scope = url, .text = "http://a/" + std::to_string(i) + std::string(40, 'x')},
              kNow + 100 + i);
  EXPECT_TRUE(large.merge(small).empty());
  (void)small.merge(large);
  EXPECT_EQ(small.pack(), large.pack());
}

TEST(PurgeList, ARuleThatHasNoRoomNamesAll) {
  PurgeList list;
  for (const char c : {'a', 'b', 'c', 'd', 'e'})
    list.add({.scope = prefix, .text = std::string(0xffff, c)}, kNow);
  EXPECT_LE(list.pack().size(), PurgeList::kMostOctets);
  EXPECT_EQ(list.on(kKey, "", kNow - 1), Effect::gone);
}

rc::Gen<PurgeList> arbitrary_list() {
  return rc::gen::exec([] {
    PurgeList list;
    const int count = *rc::gen::inRange(0, 12);
    for (int i = 0; i < count; ++i) {
      const PurgeRule rule{.scope = *rc::gen::element(url, prefix, host, PurgeScope::tag, all),
                           .text = *rc::gen::element<std::string>("a", "b", "c"),
                           .soft = *rc::gen::arbitrary<bool>()};
      list.add(rule, kNow + *rc::gen::inRange(0, 30));
    }
    return list;
  });
}

RC_GTEST_PROP(PurgeListLaw, TheOrderOfMergingDoesNotMatter, ()) {
  const PurgeList a = *arbitrary_list(), b = *arbitrary_list(), c = *arbitrary_list();
  PurgeList abc = a, cba = c;
  (void)abc.merge(b);
  (void)abc.merge(c);
  (void)cba.merge(b);
  (void)cba.merge(a);
  RC_ASSERT(abc.pack() == cba.pack());
  PurgeList twice = abc;
  RC_ASSERT(twice.merge(abc).empty());
  RC_ASSERT(twice.pack() == abc.pack());
}

RC_GTEST_PROP(PurgeListLaw, WhatOneListNamesTheUnionNames, ()) {
  const PurgeList a = *arbitrary_list(), b = *arbitrary_list();
  PurgeList both = a;
  (void)both.merge(b);
  const std::int64_t asked = kNow + *rc::gen::inRange(-5'000, 5'000);
  for (const std::string key : {"a", "b", "http://c/"}) {
    const Effect apart = std::max(a.on(key, key, asked), b.on(key, key, asked));
    RC_ASSERT(both.on(key, key, asked) == apart);
  }
}

TEST(PurgeLog, CountsAtOnce) {
  PurgeLog log;
  Entry entry;
  entry.key = kKey;
  entry.asked_ms = kNow - 1;
  EXPECT_EQ(log.on(entry, kNow), Effect::none);
  const std::uint64_t before = log.changes();
  EXPECT_FALSE(log.has_keys());
  log.add({.scope = url, .text = std::string(kKey)}, kNow);
  EXPECT_TRUE(log.has_keys());
  EXPECT_EQ(log.on(entry, kNow), Effect::gone);
  EXPECT_NE(log.changes(), before);
  EXPECT_EQ(log.take_keys(), std::vector{std::string(kKey)});
  EXPECT_FALSE(log.has_keys());
  EXPECT_TRUE(log.take_keys().empty());
}

TEST(PurgeLog, WhatAnUnsafeRequestChangedIsDoubtfulForAWhile) {
  PurgeLog log;
  Entry entry;
  entry.key = kKey;
  entry.asked_ms = kNow;
  log.invalidate(kKey, kNow);
  log.invalidate("http://a/other", kNow + 1);
  EXPECT_EQ(log.on(entry, kNow), Effect::gone);
  EXPECT_EQ(log.on(entry, kLongAfter), Effect::none) << "it has been deleted since";
  entry.asked_ms = kNow + 1;
  EXPECT_EQ(log.on(entry, kNow + 1), Effect::none) << "asked for after it";
  EXPECT_TRUE(log.list()->empty()) << "nobody else is told";
}

}  // namespace
}  // namespace clockwise::cache
