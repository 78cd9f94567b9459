// What a purge names, and what it does to what is stored and to what is being fetched.
#include "cache/purge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/stores.h"

namespace clockwise::cache {
namespace {

using test::Caller;
using test::read;
using test::Sent;
using testing::ElementsAre;

struct Named {
  PurgeScope scope;
  const char* text;
  const char* key;
  bool names;
};

TEST(PurgeRule, NamesKeys) {
  using enum PurgeScope;
  const Named rows[] = {
      {url, "http://a/x", "http://a/x", true},
      {url, "http://a/x", "http://a/xy", false},
      {url, "http://a/x", "http://a/", false},
      {prefix, "http://a/x", "http://a/xy", true},
      {prefix, "http://a/x", "http://a/x", true},
      {prefix, "http://a/x", "http://a/y", false},
      {prefix, "http://a/x", "http://a/", false},
      {prefix, "", "http://a/x", true},
      {all, "", "http://a/x", true},
      {all, "", "", true},
      {tag, "a", "http://a/x", false},
      // A host, in any case, with its port or with any.
      {host, "a.example", "http://a.example/x", true},
      {host, "A.example", "http://a.Example/x", true},
      {host, "a.example", "http://a.example", true},
      {host, "a.example", "http://a.example:8080/x", true},
      {host, "a.example:8080", "http://a.example:8080/x", true},
      {host, "a.example:80", "http://a.example:8080/x", false},
      {host, "a.example:8080", "http://a.example/x", false},
      {host, "a.example:80", "http://a.example/x", true},
      {host, "a.example:80", "http://a.example:80/x", true},
      {host, "a.example:", "http://a.example/x", true},
      {host, "a.example:", "http://a.example:8080/x", false},
      {host, "a.example", "http://a.example:80/x", true},
      {host, "a.example:443", "https://a.example/x", true},
      {host, "a.example:443", "http://a.example/x", false},
      {host, "a.example:80", "https://a.example/x", false},
      {host, "[::1]:80", "http://[::1]/x", true},
      {host, "a.example", "http://b.a.example/x", false},
      {host, "a.example", "http://a.example.b/x", false},
      {host, "a.example", "http://b/a.example", false},
      {host, "8080", "http://a.example:8080/x", false},
      {host, "[::1]", "http://[::1]/x", true},
      {host, "[::1]", "http://[::1]:8080/x", true},
      {host, "[::1]:8080", "http://[::1]:8080/x", true},
      {host, "[::1]:8080", "http://[::1]:80/x", false},
      {host, "[:", "http://[::1]/x", false},
      {host, "[2001:DB8::1]", "http://[2001:db8::1]:8080/x", true},
      {host, "[2001:db8::1]", "http://[2001:db8::2]/x", false},
      // Keys of other forms have no host, whatever else they hold.
      {host, "a", "/x", false},
      {host, "a", "a/x", false},
      {host, "b", "/to?uri=http://b/", false},
      {host, "b", "http://a/to?uri=http://b/", false},
      {host, "", "/x", false},
      {host, "", "http:///x", false},
      {host, "", "http://:8080/x", false},
  };
  for (const Named& row : rows) {
    const PurgeRule rule{.scope = row.scope, .text = row.text};
    EXPECT_EQ(rule.names_key(row.key), row.names)
        << static_cast<int>(row.scope) << " " << row.text << " | " << row.key;
  }
}

TEST(PurgeRule, NamesTags) {
  Caller caller;
  const auto names = [&](const char* tags, const char* wanted) {
    const ObjectRef object = caller.put("http://a/x", {.tags = tags});
    return PurgeRule{.scope = PurgeScope::tag, .text = wanted}.names(*object);
  };
  EXPECT_TRUE(names("red", "red"));
  EXPECT_TRUE(names("red green blue", "green"));
  EXPECT_TRUE(names("red  blue ", "blue"));
  EXPECT_FALSE(names("red green", "gre"));
  EXPECT_FALSE(names("red green", "Red"));
  EXPECT_FALSE(names("red green", "red green"));
  EXPECT_FALSE(names("", "red"));
  EXPECT_FALSE(names("", ""));
  EXPECT_FALSE(names("red  blue ", ""));
}

// One that is named in each row, by all scopes but the last, and others that are not.
constexpr const char* kNamed = "http://a/x/1";
constexpr const char* kOther = "http://b/x/1";
Sent named() { return {.body = "named", .tags = "red blue"}; }
Sent other() { return {.body = "other", .tags = "green"}; }

std::vector<PurgeRule> rules(bool soft) {
  using enum PurgeScope;
  return {{.scope = url, .text = kNamed, .soft = soft},
          {.scope = prefix, .text = "http://a/x", .soft = soft},
          {.scope = host, .text = "a", .soft = soft},
          {.scope = tag, .text = "blue", .soft = soft}};
}

TEST(Purge, TakesWhatItNamesAndSaysHowManyItWere) {
  for (const PurgeRule& rule : rules(false)) {
    Caller caller;
    caller.put(kNamed, named());
    caller.put(kOther, other());
    EXPECT_EQ(caller.store.purge(rule), 1U);
    EXPECT_FALSE(caller.find(kNamed).object);
    EXPECT_FALSE(caller.find(kNamed).other);
    EXPECT_TRUE(caller.find(kOther).object);
    EXPECT_EQ(caller.store.purge(rule), 0U);
    EXPECT_EQ(caller.store.stats().objects, 1U);
    EXPECT_EQ(caller.store.stats().evictions[2], 1U);
    caller.put(kNamed, named());
    EXPECT_TRUE(caller.find(kNamed).object) << "it is over";
    EXPECT_EQ(caller.store.purge({}), 2U);
    EXPECT_EQ(caller.store.stats().bytes, caller.bytes_at_first);
  }
}

TEST(Purge, OfAUriTakesAllItsVariants) {
  Caller caller;
  for (const char* lines : {"A: 1", "A: 2"}) {
    Sent page = named();
    page.vary = "A";
    caller.put(kNamed, page, lines);
  }
  EXPECT_EQ(caller.store.purge({.scope = PurgeScope::url, .text = kNamed}), 2U);
}

TEST(Purge, SoftlyMakesStaleButKeeps) {
  for (const PurgeRule& rule : rules(true)) {
    Caller caller;
    caller.put(kNamed, named());
    caller.put(kOther, other());
    EXPECT_EQ(caller.store.purge(rule), 1U);
    ASSERT_TRUE(caller.find(kNamed).object);
    EXPECT_TRUE(caller.find(kNamed).object->made_stale());
    EXPECT_FALSE(caller.find(kOther).object->made_stale());
    EXPECT_EQ(caller.store.stats().objects, 2U);
    EXPECT_EQ(caller.store.stats().evictions, Stats{}.evictions);
    caller.put(kNamed, named());
    EXPECT_FALSE(caller.find(kNamed).object->made_stale());
  }
}

TEST(Purge, CountsOverAllShards) {
  Caller caller(64 * test::kMiB, test::kMiB);
  for (int i = 0; i < 1000; ++i)
    caller.put("http://a/" + std::to_string(i),
               {.body = "x", .tags = i % 10 == 0 ? "tenth" : "no"});
  EXPECT_EQ(caller.store.purge({.scope = PurgeScope::tag, .text = "tenth"}), 100U);
  EXPECT_EQ(caller.store.purge({.scope = PurgeScope::prefix, .text = "http://a/1"}), 100U);
  EXPECT_EQ(caller.store.purge({.text = "", .soft = true}), 800U);
  EXPECT_EQ(caller.store.purge({}), 800U);
  EXPECT_EQ(caller.store.stats().bytes, caller.bytes_at_first);
}

TEST(Purge, ForgetsWhatCouldNotBeShared) {
  for (const PurgeRule& rule : rules(false)) {
    if (rule.scope == PurgeScope::tag) continue;  // a marker has none
    Caller caller;
    caller.store.pass(*caller.lead(kNamed), 60'000, caller.now);
    EXPECT_EQ(caller.store.purge(rule), 0U);
    EXPECT_FALSE(caller.find(kNamed).pass);
  }
}

enum class Stage { before_head, before_body, in_body };
constexpr Stage kStages[] = {Stage::before_head, Stage::before_body, Stage::in_body};

// Brings the answer as far as `from` and purges, then brings the rest.
void purge_amidst(Caller& caller, Fill& fill, const Sent& sent, Stage at, const PurgeRule& rule) {
  const auto begin = [&] { ASSERT_TRUE(caller.begin(fill, sent)); };
  if (at != Stage::before_head) begin();
  if (at == Stage::in_body) {
    ASSERT_TRUE(caller.append(fill, sent.body.substr(0, 2)));
  }
  EXPECT_EQ(caller.store.purge(rule), 0U);
  if (at == Stage::before_head) begin();
  if (fill.object()->size() > 0) {
    ASSERT_TRUE(caller.append(fill, sent.body.substr(2)));
    caller.complete(fill);
  } else {
    caller.bring(fill, sent);
  }
  EXPECT_EQ(read(fill.object()), sent.body) << "who reads it already gets it whole";
}

TEST(Purge, CountsForWhatIsBeingFetched) {
  for (const PurgeRule& rule : rules(false))
    for (const Stage at : kStages) {
      Caller caller;
      const auto fill = caller.lead(kNamed);
      const auto beside = caller.lead(kOther);
      purge_amidst(caller, *fill, named(), at, rule);
      EXPECT_FALSE(caller.find(kNamed).object) << static_cast<int>(at);
      ASSERT_TRUE(caller.begin(*beside, other()));
      caller.bring(*beside, other());
      EXPECT_TRUE(caller.find(kOther).object) << static_cast<int>(at);
      EXPECT_FALSE(caller.find(kOther).object->made_stale());
    }
}

TEST(Purge, SoftlyMakesStaleWhatIsBeingFetched) {
  for (const PurgeRule& rule : rules(true))
    for (const Stage at : kStages) {
      Caller caller;
      const auto fill = caller.lead(kNamed);
      const auto beside = caller.lead(kOther);
      purge_amidst(caller, *fill, named(), at, rule);
      ASSERT_TRUE(caller.find(kNamed).object) << static_cast<int>(at);
      EXPECT_TRUE(caller.find(kNamed).object->made_stale()) << static_cast<int>(at);
      ASSERT_TRUE(caller.begin(*beside, other()));
      caller.bring(*beside, other());
      EXPECT_FALSE(caller.find(kOther).object->made_stale());
    }
}

// The purge is exact from its answer on: who asks after it waits for no fetch from before it.
TEST(Purge, NobodyJoinsAFetchFromBeforeIt) {
  for (const bool soft : {false, true})
    for (const PurgeRule& rule : rules(soft))
      for (const bool begun : {false, true}) {
        Caller caller;
        const auto fill = caller.lead(kNamed);
        const auto beside = caller.lead(kOther);
        if (begun) {
          ASSERT_TRUE(caller.begin(*fill, named()));
        }
        caller.store.purge(rule);
        // Before its head is here, nobody knows whether a fetch brings something with that tag.
        const bool may_be = rule.scope == PurgeScope::tag;
        EXPECT_NE(caller.lead(kNamed), fill) << static_cast<int>(rule.scope) << begun;
        EXPECT_EQ(caller.join(kOther).fill == beside, !may_be);
        ASSERT_TRUE(caller.begin(*beside, other()));
        EXPECT_EQ(caller.join(kOther).fill, beside);
      }
}

TEST(Purge, DoesNotConcernFetchesThatBeginAfterIt) {
  for (const PurgeRule& rule : rules(false)) {
    Caller caller;
    caller.store.purge(rule);
    caller.put(kNamed, named());
    EXPECT_TRUE(caller.find(kNamed).object);
  }
}

TEST(Purge, ConcernsAFetchThatOnlyConfirms) {
  for (const bool soft : {false, true})
    for (const PurgeRule& rule : rules(soft)) {
      Caller caller;
      const ObjectRef old = caller.put(kNamed, named());
      const auto fill = caller.lead(kNamed);
      EXPECT_EQ(caller.store.purge(rule), 1U);
      caller.confirm(*fill, old, named());
      EXPECT_EQ(read(fill->object()), "named");
      const auto found = caller.find(kNamed).object;
      EXPECT_EQ(static_cast<bool>(found), soft) << static_cast<int>(rule.scope);
      if (found) {
        EXPECT_TRUE(found->made_stale()) << static_cast<int>(rule.scope);
      }
    }
}

}  // namespace
}  // namespace clockwise::cache
