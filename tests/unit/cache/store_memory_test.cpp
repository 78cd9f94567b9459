// What the store costs, that it never costs more than it may, and who leaves it.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/stores.h"
#include "support/traces.h"

namespace clockwise::cache {
namespace {

using test::body_of;
using test::Caller;
using test::kKiB;
using test::kMiB;
using test::mixed;
using test::read;
using test::Sent;
using test::Trace;

// --- the bound ----------------------------------------------------------------------------------

TEST(StoreMemory, IsBoundedFromTheStart) {
  for (const std::uint64_t size : {kMiB, kMiB + 12'345, 5 * kMiB - 1, 64 * kMiB + 4097}) {
    Caller caller(size, kMiB / 4);
    EXPECT_EQ(caller.store.stats().limit, size);
    EXPECT_LT(caller.bytes_at_first, size / 20);
    std::uint64_t i = 0;
    while (caller.store.stats().evictions[0] == 0) {
      caller.put("http://a/" + std::to_string(i++), {.body = std::string(10'000, 'x')});
      ASSERT_LE(caller.store.stats().bytes, size);
    }
    // Up to the last little piece.
    for (int little = 0; little < 10'000; ++little) {
      const auto fill = caller.lead("http://b/" + std::to_string(little));
      if (caller.begin(*fill, {.head = "X: 1\r\n"})) caller.complete(*fill);
      ASSERT_LE(caller.store.stats().bytes, size);
    }
  }
}

// Everything that users do, in any order, with far more than fits.
class Workload {
 public:
  explicit Workload(std::uint64_t seed) : caller_(kMiB, 200 * kKiB), random_(seed) {}

  void step() {
    caller_.now += up_to(100);
    switch (up_to(19)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return begin();
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
        return append();
      case 11:
      case 12:
      case 13:
        return end();
      case 14:
        return confirm();
      case 15:
      case 16:
        return hold();
      case 17:
        if (!held_.empty()) held_.erase(held_.begin() + static_cast<long>(up_to(held_.size() - 1)));
        return;
      case 18:
        return forget();
      default:
        caller_.store.sweep(caller_.now);
    }
  }
  void check_bound() {
    const Stats stats = caller_.store.stats();
    ASSERT_LE(stats.bytes, stats.limit);
  }
  void check_end() {
    while (!open_.empty()) end();
    for (const auto& [body, object] : held_) {
      ASSERT_EQ(object->size(), body.size);
      ASSERT_TRUE(read(object) == body_of(body.seed, body.size));
    }
    held_.clear();
    EXPECT_EQ(caller_.bytes_once_purged(), caller_.bytes_at_first);
    EXPECT_EQ(caller_.store.stats().objects, 0U);
  }
  Stats stats() const { return caller_.store.stats(); }

 private:
  struct Body {
    std::uint64_t seed = 0, size = 0;
  };
  struct Open {
    std::shared_ptr<Fill> fill;
    Body body;
    std::uint64_t brought = 0;
  };

  std::uint64_t up_to(std::uint64_t most) { return random_() % (most + 1); }
  std::string any_key() { return "http://a/" + std::to_string(up_to(300)); }
  std::string any_lines() { return up_to(3) > 0 ? "" : "A: " + std::to_string(up_to(3)); }

  void begin() {
    if (open_.size() > 8) return end();
    const std::string key = any_key(), lines = any_lines();
    auto joined = caller_.join(key, lines, up_to(9) == 0);
    if (!joined.leads) return;
    const Body body{.seed = random_(), .size = up_to(up_to(9) == 0 ? 300'000 : 20'000)};
    Sent sent{.vary = lines.empty() ? "" : "A",
              .tags = up_to(1) > 0 ? "red blue" : "",
              .declared = up_to(2) > 0,
              .lifetime = static_cast<std::uint32_t>(up_to(500))};
    sent.head = "X-Seed: " + std::to_string(body.seed) + "\r\n" + std::string(up_to(500), 'x');
    sent.body.resize(body.size);
    if (up_to(19) == 0 || !caller_.begin(*joined.fill, sent, lines))
      return caller_.store.pass(*joined.fill, static_cast<std::int64_t>(up_to(3000)), caller_.now);
    open_.push_back({std::move(joined.fill), body});
  }
  void append() {
    if (open_.empty()) return;
    Open& one = open_[up_to(open_.size() - 1)];
    bring(one, std::min(up_to(up_to(1) > 0 ? 100 : 70'000), one.body.size - one.brought));
  }
  void bring(Open& one, std::uint64_t n) {
    if (n > 0) {
      EXPECT_TRUE(caller_.append(*one.fill, body_of(one.body.seed, n, one.brought)));
    }
    one.brought += n;
  }
  void end() {
    if (open_.empty()) return;
    std::swap(open_[up_to(open_.size() - 1)], open_.back());
    Open one = std::move(open_.back());
    open_.pop_back();
    if (up_to(9) == 0) return caller_.store.cut(*one.fill);
    bring(one, one.body.size - one.brought);
    caller_.complete(*one.fill);
  }
  void confirm() {
    const std::string key = any_key(), lines = any_lines();
    const auto old = caller_.find(key, lines).object;
    if (!old) return;
    auto joined = caller_.join(key, lines);
    if (!joined.leads) return;
    Sent sent{.vary = old->selectors().empty() ? "" : "A", .head = std::string(old->head())};
    caller_.confirm(*joined.fill, old, sent, lines);
  }
  void hold() {
    auto object = caller_.find(any_key(), any_lines()).object;
    if (!object) return;
    object->touch();
    if (held_.size() > 20) return;
    const Body body{.seed = std::stoull(std::string(object->field("x-seed"))),
                    .size = object->size()};
    held_.emplace_back(body, std::move(object));
  }
  void forget() {
    switch (up_to(15)) {
      case 0:
        caller_.store.purge({.scope = PurgeScope::tag, .text = "red", .soft = up_to(1) > 0});
        return;
      case 1:
        caller_.store.purge({.scope = PurgeScope::prefix, .text = "http://a/1"});
        return;
      case 2:
        caller_.store.purge({.scope = PurgeScope::url, .text = any_key()});
        return;
      default:
        caller_.store.invalidate(any_key());
    }
  }

  Caller caller_;
  std::mt19937_64 random_;
  std::vector<Open> open_;
  std::vector<std::pair<Body, ObjectRef>> held_;
};

TEST(StoreMemory, NeverHoldsMoreThanItsSizeAndGivesAllBack) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Workload workload(seed);
    for (int i = 0; i < 30'000; ++i) {
      workload.step();
      workload.check_bound();
      if (testing::Test::HasFailure()) return;
    }
    workload.check_end();
    const Stats stats = workload.stats();
    EXPECT_GT(stats.evictions[0], 1000U);
    EXPECT_GT(stats.evictions[1], 100U);
    EXPECT_GT(stats.evictions[2], 100U);
    EXPECT_GT(stats.evictions[3], 100U);
  }
}

// --- what one costs -----------------------------------------------------------------------------

TEST(StoreMemory, CostsLittleBesideWhatIsStored) {
  constexpr std::uint64_t kCount = 100'000, kBody = 1024, kHead = 216, kKey = 35;
  Caller caller(150 * kMiB, kMiB);
  const Sent page{.body = std::string(kBody, 'x'), .head = std::string(kHead, 'x')};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    std::string key = "http://example.com/" + std::to_string(i);
    key.resize(kKey, '/');
    caller.put(key, page);
  }
  const Stats stats = caller.store.stats();
  ASSERT_EQ(stats.objects, kCount);
  const std::uint64_t each = (stats.bytes - caller.bytes_at_first) / kCount;
  const std::uint64_t with_index = stats.bytes / kCount;
  RecordProperty("octets", static_cast<int>(each));
  RecordProperty("octets_with_index", static_cast<int>(with_index));
  EXPECT_LE(each, kBody + kHead + kKey + 120);
  EXPECT_LE(with_index, kBody + 400);
}

// --- who leaves ---------------------------------------------------------------------------------

TEST(StoreMemory, WhatIsAskedForStaysAndWhatIsNotLeaves) {
  Caller caller(kMiB, 100 * kKiB);
  caller.put("http://a/asked", {.body = std::string(10'000, 'x')});
  for (int i = 0; i < 1000; ++i) {
    const auto asked = caller.find("http://a/asked").object;
    ASSERT_TRUE(asked) << i;
    asked->touch();
    caller.put("http://b/" + std::to_string(i), {.body = std::string(10'000, 'x')});
  }
  EXPECT_FALSE(caller.find("http://b/1").object);
}

TEST(StoreMemory, TellsHowOldItWasWhatLeft) {
  Caller caller(kMiB, 100 * kKiB);
  const auto put = [&](int i, std::uint32_t lifetime) {
    caller.put("http://a/" + std::to_string(i),
               {.body = std::string(10'000, 'x'), .lifetime = lifetime});
  };
  int count = 0;
  while (caller.store.stats().evictions[0] == 0) put(count++, 10'000);
  const Stats before = caller.store.stats();
  EXPECT_EQ(before.eviction_ages[0], before.evictions[0]) << "not a second old";
  caller.now += 100'000;
  for (int i = 0; i < count / 2; ++i) put(count + i, 10'000);
  const Stats after = caller.store.stats();
  const std::uint64_t left = after.evictions[0] - before.evictions[0];
  EXPECT_EQ(after.eviction_ages[3], left) << "from 60 to 600 seconds";
  EXPECT_EQ(after.eviction_age_sum, 100.0 * static_cast<double>(left));
}

// Hit ratios of the store for a trace of answers whose bodies have `size_of(key)` octets each.
struct Ratios {
  double hits = 0, octets = 0;
};
template <class SizeOf>
Ratios ratios(Caller& caller, const Trace& trace, SizeOf size_of) {
  std::uint64_t hits = 0, hit_octets = 0, octets = 0;
  const std::string body(2 * kMiB, 'x');
  Draft draft;
  draft.head = "Content-Type: text/plain\r\n";
  draft.terms.received_ms = caller.now;
  draft.terms.lifetime = 1000;
  for (const std::uint64_t id : trace) {
    const std::string key = "http://example.com/" + std::to_string(id);
    const Wanted wanted{.hash = caller.store.hash(key), .key = key, .octets = {}, .fields = {}};
    draft.length = size_of(id);
    octets += draft.length;
    if (const auto found = caller.store.find(wanted, caller.now); found.object) {
      found.object->touch();
      ++hits;
      hit_octets += draft.length;
      continue;
    }
    const auto joined = caller.store.join(wanted, {}, false, caller.now);
    if (!caller.store.begin(*joined.fill, draft, caller.now)) {
      caller.store.cut(*joined.fill);
      continue;
    }
    for (std::uint64_t at = 0; at < draft.length; at += 16 * kKiB)
      EXPECT_TRUE(caller.store.append(
          *joined.fill, std::string_view(body).substr(0, std::min(16 * kKiB, draft.length - at)),
          caller.most, caller.now));
    caller.store.complete(*joined.fill, 100);
  }
  return {static_cast<double>(hits) / static_cast<double>(trace.size()),
          static_cast<double>(hit_octets) / static_cast<double>(octets)};
}

TEST(StoreMemory, EvictsAsWellAsThePublishedAlgorithm) {
  constexpr std::size_t kKeys = 10'000, kRoom = kKeys / 10;
  for (const double alpha : {0.8, 1.0})
    for (const bool scans : {false, true}) {
      const Trace trace = test::zipf(kKeys, alpha, 100'000, scans);
      Caller caller(kRoom * 1240, 100 * kKiB);
      const Ratios ours = ratios(caller, trace, [](std::uint64_t) { return kKiB; });
      const std::uint64_t room = caller.store.stats().objects;
      const double reference = test::reference_s3_fifo(trace, kRoom);
      SCOPED_TRACE(testing::Message() << "alpha " << alpha << (scans ? " with scans" : ""));
      EXPECT_NEAR(static_cast<double>(room), kRoom, kRoom / 20.0);
      EXPECT_GE(ours.hits, reference - 0.005);
    }
}

double part_of(std::uint64_t id) { return static_cast<double>(mixed(id + 1) >> 11U) * 0x1.0p-53; }

struct Sizes {
  const char* name;
  std::uint64_t (*of)(std::uint64_t id);
  double alpha;
};

// The memory of an answer that leaves is seldom as large as what the next one needs.
TEST(StoreMemory, SizesOfAllKindsDoNotStandInEachOthersWay) {
  constexpr std::size_t kKeys = 5'000;
  const auto of_all_kinds = [](std::uint64_t id) {
    const double part = part_of(id);
    return static_cast<std::uint64_t>(200 * std::exp(part * part * std::log(5.0 * kKiB)));
  };
  const auto nearly_the_same = [](std::uint64_t id) { return 1000 + mixed(id) % 100; };
  const auto few_large_ones = [](std::uint64_t id) {
    return mixed(id) % 50 == 0 ? 60 * kKiB : kKiB;
  };
  const Sizes rows[] = {{"of all kinds", of_all_kinds, 0.8},
                        {"of all kinds", of_all_kinds, 1.0},
                        {"nearly the same", nearly_the_same, 0.8},
                        {"large ones among small ones", few_large_ones, 0.8}};
  for (const Sizes& row : rows)
    for (const bool scans : {false, true}) {
      std::uint64_t all = 0;
      const auto cost = [&](std::uint64_t id) { return row.of(id) + 200; };
      for (std::uint64_t id = 0; id < kKeys; ++id) all += cost(id);
      const Trace trace = test::zipf(kKeys, row.alpha, 50'000, scans);
      Caller caller(all / 10, all);
      const Ratios ours = ratios(caller, trace, row.of);
      std::uint64_t hits = 0, hit_octets = 0, octets = 0;
      for (const std::uint64_t id : trace) octets += row.of(id);
      test::reference_s3_fifo(trace, caller.store.size() - caller.bytes_at_first,
                              caller.store.stats().objects, cost, [&](std::uint64_t id) {
                                ++hits;
                                hit_octets += row.of(id);
                              });
      const Ratios reference{static_cast<double>(hits) / static_cast<double>(trace.size()),
                             static_cast<double>(hit_octets) / static_cast<double>(octets)};
      const Stats stats = caller.store.stats();
      const double full = static_cast<double>(stats.bytes) / static_cast<double>(stats.limit);
      SCOPED_TRACE(testing::Message()
                   << row.name << ", alpha " << row.alpha << (scans ? " with scans" : ""));
      EXPECT_GE(ours.hits, reference.hits - 0.01);
      EXPECT_GE(ours.octets, reference.octets - 0.02);
      EXPECT_GE(full, 0.8);
    }
}

// --- what nobody can use any more ---------------------------------------------------------------

TEST(StoreMemory, WhatIsSpentIsSweptAway) {
  Caller caller;
  caller.put("http://a/short", {.body = "x", .lifetime = 10});
  caller.put("http://a/long", {.body = "x", .lifetime = 1000});
  caller.put("http://a/validated", {.body = "x", .lifetime = 10, .has_validator = true});
  caller.store.pass(*caller.lead("http://a/marker"), 20'000, caller.now);
  const auto sweep_all = [&] {
    for (int i = 0; i < 1000; ++i) caller.store.sweep(caller.now);
  };
  const auto in = [&](const char* key) {
    return static_cast<bool>(caller.find(std::string("http://a/") + key).object);
  };
  caller.now += 9'999;
  sweep_all();
  EXPECT_TRUE(in("short"));
  caller.now += 1;
  sweep_all();
  EXPECT_FALSE(in("short"));
  EXPECT_TRUE(in("long"));
  EXPECT_TRUE(in("validated")) << "the origin may confirm it";
  EXPECT_TRUE(caller.find("http://a/marker").pass);
  EXPECT_EQ(caller.store.stats().evictions[1], 1U);
  const std::uint64_t with_marker = caller.store.stats().bytes;
  caller.now += 10'000;
  sweep_all();
  EXPECT_LT(caller.store.stats().bytes, with_marker);
  EXPECT_EQ(caller.store.stats().evictions[1], 1U) << "a marker is no answer";
}

struct Stale {
  std::uint32_t revalidate, error;
  bool never;
  int kept_for;  // beyond its lifetime, in seconds
};

TEST(StoreMemory, WhatMayBeGivenStaleIsKeptSoLong) {
  const Stale rows[] = {{0, 0, false, 0},
                        {50, 0, false, 50},
                        {0, 70, false, 70},
                        {50, 70, false, 70},
                        {50, 70, true, 0}};
  for (const Stale& row : rows) {
    Caller caller;
    const auto fill = caller.lead("http://a/x");
    Draft draft;
    draft.terms.received_ms = caller.now;
    draft.terms.lifetime = 10;
    draft.terms.stale_while_revalidate = row.revalidate;
    draft.terms.stale_if_error = row.error;
    draft.terms.never_stale = row.never;
    draft.length = 0;
    ASSERT_TRUE(caller.store.begin(*fill, draft, caller.now));
    caller.complete(*fill);
    const auto kept_at = [&](std::int64_t now) {
      for (int i = 0; i < 1000; ++i) caller.store.sweep(now);
      return caller.store.stats().objects == 1;
    };
    const std::int64_t end = caller.now + (10 + row.kept_for) * 1000;
    EXPECT_TRUE(kept_at(end - 1));
    EXPECT_FALSE(kept_at(end));
  }
}

}  // namespace
}  // namespace clockwise::cache
