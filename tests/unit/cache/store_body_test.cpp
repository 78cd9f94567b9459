// Bodies in the store: their pieces, those that are borrowed, and those that only pass through.
#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/stores.h"

namespace clockwise::cache {
namespace {

using test::body_of;
using test::Caller;
using test::kKiB;
using test::kMiB;
using test::Nudged;
using test::read;
using test::Sent;
using test::Waiter;
using State = Fill::State;

constexpr const char* kKey = "http://a/x";

// Around what stands behind the head, and around what one extent holds.
constexpr std::uint64_t kSizes[] = {0,
                                    1,
                                    2,
                                    1000,
                                    4 * kKiB - 1,
                                    4 * kKiB,
                                    4 * kKiB + 1,
                                    64 * kKiB - 1,
                                    64 * kKiB,
                                    64 * kKiB + 1,
                                    256 * kKiB - 1,
                                    256 * kKiB,
                                    256 * kKiB + 1,
                                    320 * kKiB,
                                    512 * kKiB + 1,
                                    1000 * kKiB};

TEST(Body, OfAnySizeInAnyPieces) {
  for (const std::uint64_t size : kSizes)
    for (const bool declared : {true, false})
      for (const std::size_t piece : {std::size_t{13}, std::size_t{4096}, std::size_t{100'003}}) {
        if (piece == 13 && size > 100 * kKiB) continue;
        Caller caller;
        const Sent page{.body = body_of(size, size), .declared = declared};
        caller.put(kKey, page, {}, piece);
        const auto found = caller.find(kKey).object;
        ASSERT_TRUE(found) << size;
        ASSERT_EQ(found->size(), size);
        ASSERT_TRUE(read(found) == page.body) << size << (declared ? " declared " : " ") << piece;
      }
}

// What came in one go is not scattered, and nothing is left over.
TEST(Body, CostsHardlyMoreThanItsOctets) {
  for (const std::uint64_t size : kSizes)
    for (const bool declared : {true, false})
      for (const std::size_t piece : {std::size_t{16 * kKiB}, SIZE_MAX}) {
        Caller caller;
        caller.put(kKey, {.body = body_of(1, size), .declared = declared}, {}, piece);
        const std::uint64_t cost = caller.store.stats().bytes - caller.bytes_at_first;
        EXPECT_LE(cost, size + 256 + 32 * (size / (128 * kKiB) + 6)) << size << declared;
      }
}

TEST(Body, WhileItComesItTakesNoMoreThanItWillOrTwice) {
  for (const bool declared : {true, false}) {
    Caller caller;
    const Sent page{.body = body_of(1, 400 * kKiB), .declared = declared};
    const auto fill = caller.lead(kKey);
    ASSERT_TRUE(caller.begin(*fill, page));
    ASSERT_TRUE(caller.append(*fill, page.body.substr(0, 300 * kKiB)));
    const std::uint64_t held = caller.store.stats().bytes - caller.bytes_at_first;
    EXPECT_LE(held, (declared ? 401 : 600) * kKiB);
    caller.store.cut(*fill);
  }
}

// More than was declared is no reason to lose anything.
TEST(Body, MayBeLongerThanDeclared) {
  for (const std::uint64_t declared : {std::uint64_t{0}, std::uint64_t{10}, 100 * kKiB}) {
    Caller caller;
    const auto fill = caller.lead(kKey);
    ASSERT_TRUE(caller.begin(*fill, {.body = std::string(declared, 'x')}));
    const Sent longer{.body = body_of(1, declared + 10'000)};
    caller.bring(*fill, longer, 5'000);
    EXPECT_TRUE(read(fill->object()) == longer.body);
    EXPECT_EQ(fill->length(), longer.body.size());
  }
}

// A body that comes in pieces of `steps`, and cursors at places of their own that go on to ends of
// their own.
RC_GTEST_PROP(BodyLaw, CursorsReadWhatCame, (bool declared)) {
  const auto steps = *rc::gen::resize(
      60, rc::gen::container<std::vector<std::size_t>>(rc::gen::weightedOneOf<std::size_t>(
              {{3, rc::gen::inRange<std::size_t>(1, 100)},
               {2, rc::gen::inRange<std::size_t>(1, 40'000)}})));
  std::size_t size = 0;
  for (const std::size_t step : steps) size += step;
  const std::string body = body_of(7, size);
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };

  Caller caller(8 * kMiB, 2 * kMiB);
  const auto fill = caller.lead(kKey);
  RC_ASSERT(caller.begin(*fill, {.body = body, .declared = declared}));
  const ObjectRef object = fill->object();
  std::vector<Cursor> cursors;
  std::size_t there = 0;
  for (const std::size_t step : steps) {
    RC_ASSERT(caller.append(*fill, std::string_view(body).substr(there, step)));
    there += step;
    RC_ASSERT(object->size() == there);
    cursors.emplace_back(*object, up_to(there));
    for (int i = 0; i < 4; ++i) {
      Cursor& cursor = cursors[up_to(cursors.size() - 1)];
      const std::uint64_t end = up_to(there);
      const std::string_view run = cursor.run(end);
      RC_ASSERT(run.empty() == (cursor.offset() >= end));
      RC_ASSERT(cursor.offset() >= end || run.size() <= end - cursor.offset());
      RC_ASSERT(run == std::string_view(body).substr(cursor.offset(), run.size()));
      const std::uint64_t n = up_to(std::min<std::uint64_t>(there - cursor.offset(), 50'000));
      const std::uint64_t before = cursor.offset();
      cursor.advance(n);
      RC_ASSERT(cursor.offset() == before + n);
    }
  }
  caller.complete(*fill);
  for (Cursor& cursor : cursors)
    RC_ASSERT(read(*object, cursor.offset(), size) == body.substr(cursor.offset()));
  RC_ASSERT(read(object) == body);
}

// --- those that are held ------------------------------------------------------------------------

TEST(Body, StaysReadableWhileItIsHeld) {
  enum class Way { evicted, replaced, purged, invalidated, swept };
  for (const Way way : {Way::evicted, Way::replaced, Way::purged, Way::invalidated, Way::swept})
    for (const std::uint64_t size : {std::uint64_t{1000}, 300 * kKiB}) {
      Caller caller(2 * kMiB, 400 * kKiB);
      const std::string body = body_of(size, size);
      ObjectRef held = caller.put(kKey, {.body = body});
      Cursor cursor(*held, 0);
      cursor.advance(size / 2);
      switch (way) {
        case Way::evicted:
          break;
        case Way::replaced:
          caller.put(kKey, {.body = "new"});
          break;
        case Way::purged:
          EXPECT_EQ(caller.store.purge({}), 1U);
          break;
        case Way::invalidated:
          EXPECT_EQ(caller.store.invalidate(kKey), 1U);
          break;
        case Way::swept:
          caller.now += 1'000'000;
          for (int i = 0; i < 100; ++i) caller.store.sweep(caller.now);
          break;
      }
      // Whatever memory is given back is used again.
      for (std::uint64_t i = 0; i < 40; ++i)
        caller.put("http://b/" + std::to_string(i), {.body = body_of(i, 100 * kKiB)});
      EXPECT_NE(caller.find(kKey).object, held) << static_cast<int>(way);
      EXPECT_EQ(held->key(), kKey);
      EXPECT_TRUE(read(held) == body) << static_cast<int>(way);
      EXPECT_EQ(cursor.run(size), std::string_view(body).substr(size / 2, cursor.run(size).size()));
      const std::uint64_t with = caller.bytes_once_purged();
      EXPECT_GE(with, caller.bytes_at_first + size);
      ObjectRef copy = held;
      held.reset();
      EXPECT_EQ(caller.store.stats().bytes, with);
      copy = {};
      EXPECT_EQ(caller.store.stats().bytes, caller.bytes_at_first);
    }
}

TEST(Body, RefsAreSharedMovedAndGivenBack) {
  Caller caller;
  ObjectRef a = caller.put(kKey, {.body = "x"});
  const ObjectRef b = a;
  ObjectRef c = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_TRUE(b == c);
  c = b;
  ObjectRef& same = c;
  c = same;
  EXPECT_EQ(read(c), "x");
  c = caller.put("http://a/y", {.body = "y"});
  EXPECT_EQ(read(c), "y");
  EXPECT_EQ(read(b), "x");
}

// --- those that are borrowed --------------------------------------------------------------------

TEST(Body, IsBorrowedByTheConfirmedAnswer) {
  Caller caller;
  for (const std::uint64_t size : {std::uint64_t{10}, 300 * kKiB}) {
    const Sent page{.body = body_of(size, size), .tags = "old"};
    const ObjectRef old = caller.put(kKey, page);
    const std::uint64_t bytes = caller.store.stats().bytes;
    const auto fill = caller.lead(kKey);
    Waiter waiter;
    ASSERT_TRUE(fill->follow(waiter, 1));
    ASSERT_TRUE(fill->wait(waiter, State::waiting, 0));
    caller.now += 50'000;
    caller.confirm(*fill, old, {.tags = "new", .head = "X-New: 1\r\n"});
    EXPECT_EQ(waiter.woken, 1);
    fill->unfollow(waiter);
    EXPECT_EQ(fill->state(), State::done);
    EXPECT_TRUE(fill->revalidated());
    EXPECT_EQ(fill->length(), size);
    const auto found = caller.find(kKey).object;
    EXPECT_EQ(found, fill->object());
    EXPECT_NE(found, old);
    EXPECT_EQ(found->head(), "X-New: 1\r\n");
    EXPECT_EQ(found->tags(), "new");
    EXPECT_EQ(found->terms().received_ms, caller.now);
    EXPECT_EQ(found->size(), size);
    EXPECT_TRUE(read(found) == page.body);
    EXPECT_EQ(caller.store.stats().objects, 1U);
    EXPECT_LT(caller.store.stats().bytes, bytes + 300) << "the body is there once";
  }
}

TEST(Body, IsBorrowedOverManyConfirmations) {
  Caller caller;
  const Sent page{.body = body_of(3, 200 * kKiB)};
  caller.put(kKey, page);
  std::uint64_t bytes = 0;
  for (int i = 0; i < 100; ++i) {
    ++caller.now;
    const auto fill = caller.lead(kKey);
    caller.confirm(*fill, caller.find(kKey).object, page);
    if (i == 0) bytes = caller.store.stats().bytes;
  }
  EXPECT_EQ(caller.store.stats().bytes, bytes) << "who lent it on is gone";
  EXPECT_TRUE(read(caller.find(kKey).object) == page.body);
  EXPECT_EQ(caller.bytes_once_purged(), caller.bytes_at_first);
}

// Whatever becomes of the answer that it was brought with.
TEST(Body, OutlivesTheAnswerThatItCameWith) {
  enum class Meanwhile { evicted, purged, replaced };
  for (const Meanwhile meanwhile : {Meanwhile::evicted, Meanwhile::purged, Meanwhile::replaced}) {
    Caller caller(2 * kMiB, 400 * kKiB);
    const Sent page{.body = body_of(3, 200 * kKiB)};
    ObjectRef old = caller.put(kKey, page);
    auto fill = caller.lead(kKey);
    if (meanwhile == Meanwhile::evicted)
      for (std::uint64_t i = 0; caller.find(kKey).object; ++i)
        caller.put("http://b/" + std::to_string(i), {.body = body_of(i, 100 * kKiB)});
    if (meanwhile == Meanwhile::purged) caller.store.purge({});
    if (meanwhile == Meanwhile::replaced) {
      const auto alone = caller.lead(kKey, "", true);
      ASSERT_TRUE(caller.begin(*alone, {.body = "newer"}));
      caller.bring(*alone, {.body = "newer"});
    }
    caller.confirm(*fill, old, page);
    old.reset();
    for (std::uint64_t i = 0; i < 3; ++i)
      caller.put("http://c/" + std::to_string(i), {.body = body_of(i, 300 * kKiB)});
    EXPECT_TRUE(read(fill->object()) == page.body);
    fill.reset();
    EXPECT_EQ(caller.bytes_once_purged(), caller.bytes_at_first);
  }
}

// Answers that somebody holds, so that at most `left` octets in one piece can be had.
std::vector<ObjectRef> hold_all(Caller& caller, std::uint64_t left) {
  std::vector<ObjectRef> held;
  for (std::uint64_t size = 32 * kKiB; size > left;) {
    const auto fill = caller.lead("http://b/" + std::to_string(held.size()));
    if (caller.begin(*fill, {.body = std::string(size, 'x')}))
      held.push_back(fill->object());
    else
      size /= 2;
    caller.store.cut(*fill);
  }
  return held;
}

TEST(Body, OfAnAnswerThatCannotBeConfirmedForLackOfRoomIsStillGiven) {
  Caller caller(kMiB, 200 * kKiB);
  const Sent page{.body = body_of(3, 1000)};
  const ObjectRef old = caller.put(kKey, page);
  const auto held = hold_all(caller, 1000);
  const auto fill = caller.lead(kKey);
  caller.confirm(*fill, old, {.head = std::string(10'000, 'x')});
  EXPECT_EQ(fill->state(), State::done);
  EXPECT_EQ(fill->object(), old);
  EXPECT_EQ(read(fill->object()), page.body);
  EXPECT_GT(caller.store.stats().rejected, 0U);
}

// --- those that pass through --------------------------------------------------------------------

// Somebody who reads a body of `test::body_of(1, …)` at a speed of its own.
class Reader {
 public:
  Reader(std::shared_ptr<Fill> fill, std::uint64_t speed)
      : fill_(std::move(fill)), speed_(speed), follows_(fill_->follow(waiter_, 100)) {}
  ~Reader() { fill_->unfollow(waiter_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  bool follows() const { return follows_; }
  std::uint64_t offset() const { return cursor_.offset(); }
  void begin() {
    object_ = fill_->object();
    cursor_ = Cursor(*object_, 0);
  }
  // As much as its speed allows; at the end of what is there it waits.
  void turn() {
    std::uint64_t left = speed_;
    const std::uint64_t size = object_->size();
    while (left > 0) {
      const std::string_view run = cursor_.run(size).substr(0, left);
      if (run.empty()) {
        (void)fill_->wait(waiter_, State::streaming, cursor_.offset());
        return;
      }
      ASSERT_TRUE(run == body_of(1, run.size(), cursor_.offset())) << cursor_.offset();
      cursor_.advance(run.size());
      left -= run.size();
    }
  }

 private:
  std::shared_ptr<Fill> fill_;
  std::uint64_t speed_;
  Waiter waiter_;
  bool follows_;
  ObjectRef object_;
  Cursor cursor_;
};

// Octets that malloc has lent.
std::size_t heap() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

// Brings `size` octets to the readers, and heeds may_go_on(). What the store and the heap held at
// most on the way, once all were far past what is kept.
struct Held {
  std::uint64_t in_store = 0;
  std::size_t on_heap = 0;
};
Held bring_to(Caller& caller, Fill& fill, std::uint64_t size, std::uint64_t chunk,
              std::vector<std::unique_ptr<Reader>>& readers) {
  Nudged nudged;
  fill.fetched_by(&nudged);
  Held most;
  const std::size_t heap_at_first = heap();
  std::uint64_t brought = 0;
  bool paused = false;
  for (auto& reader : readers) reader->begin();
  const auto all_past = [&](std::uint64_t place) {
    return std::ranges::all_of(readers, [&](auto& one) { return one->offset() >= place; });
  };
  while (brought < size) {
    if (std::exchange(nudged.nudged, 0) > 0) paused = !fill.may_go_on();
    if (!paused) {
      const std::uint64_t n = std::min(chunk, size - brought);
      EXPECT_TRUE(caller.append(fill, body_of(1, n, brought)));
      brought += n;
      paused = !fill.may_go_on();
    }
    for (auto& reader : readers) reader->turn();
    if (testing::Test::HasFatalFailure()) return most;
    if (!all_past(4 * Fill::kWindow)) continue;
    most.in_store = std::max(most.in_store, caller.store.stats().bytes);
    most.on_heap = std::max(most.on_heap, heap() - heap_at_first);
  }
  caller.complete(fill);
  while (!all_past(size) && !testing::Test::HasFatalFailure())
    for (auto& reader : readers) reader->turn();
  fill.fetched_by(nullptr);
  return most;
}

TEST(Passing, WhatIsTooLargeGoesThroughToAllWhoReadItAndIsNotKept) {
  constexpr std::uint64_t kSize = 30 * kMiB, kChunk = 40'000;
  Caller caller(2 * kMiB, 100 * kKiB);
  const auto fill = caller.lead(kKey);
  std::vector<std::unique_ptr<Reader>> readers;
  for (const std::uint64_t speed : {200'000, 50'000, 30'001, 7'001})
    readers.push_back(std::make_unique<Reader>(fill, speed));
  ASSERT_TRUE(caller.begin(*fill, {.declared = false}));
  const Held held = bring_to(caller, *fill, kSize, kChunk, readers);
  EXPECT_EQ(fill->state(), State::done);
  EXPECT_EQ(fill->length(), kSize);
  // The head only, with what stands behind it.
  EXPECT_LE(held.in_store, caller.bytes_at_first + kKiB);
  EXPECT_LE(held.on_heap, Fill::kWindow + kChunk + 4 * 64 * kKiB);
  EXPECT_FALSE(caller.find(kKey).object);
  Waiter late;
  EXPECT_FALSE(fill->follow(late, 100)) << "it cannot be read from its beginning";
  EXPECT_NE(caller.lead(kKey), fill);
}

TEST(Passing, BeginsWhereTheLimitIsAndNotBefore) {
  for (const std::uint64_t size : {std::uint64_t{100'000}, std::uint64_t{100'001}}) {
    Caller caller(2 * kMiB, 100'000);
    const auto fill = caller.lead(kKey);
    ASSERT_TRUE(caller.begin(*fill, {.declared = false}));
    const std::string body = body_of(1, size);
    ASSERT_TRUE(caller.append(*fill, std::string_view(body).substr(0, 99'999)));
    EXPECT_EQ(caller.join(kKey).fill, fill);
    ASSERT_TRUE(caller.append(*fill, std::string_view(body).substr(99'999)));
    const bool kept = size == 100'000;
    EXPECT_EQ(caller.join(kKey).fill == fill, kept);
    Waiter waiter;
    EXPECT_EQ(fill->follow(waiter, 100), kept);
    caller.complete(*fill);
    EXPECT_EQ(static_cast<bool>(caller.find(kKey).object), kept);
    fill->unfollow(waiter);
  }
}

TEST(Passing, WhatHasNoRoomGoesThrough) {
  Caller caller(kMiB, 256 * kKiB);
  caller.put("http://a/free", {.body = std::string(5000, 'x')});
  auto held = hold_all(caller, 0);
  held.erase(held.begin() + 3);

  for (const bool declared : {true, false}) {
    constexpr std::uint64_t kSize = 200 * kKiB;
    const auto fill = caller.lead(kKey);
    std::vector<std::unique_ptr<Reader>> readers;
    for (const std::uint64_t speed : {70'000, 1'001})
      readers.push_back(std::make_unique<Reader>(fill, speed));
    ASSERT_TRUE(caller.begin(
        *fill, {.body = std::string(declared ? kSize : 0, 'x'), .declared = declared}));
    (void)bring_to(caller, *fill, kSize, 10'000, readers);
    EXPECT_FALSE(caller.find(kKey).object);
    EXPECT_LE(caller.store.stats().bytes, caller.store.size());
  }
  EXPECT_GT(caller.store.stats().rejected, 0U);
  EXPECT_EQ(caller.store.stats().objects, 0U) << "what could be evicted was";
  held.clear();
  EXPECT_EQ(caller.bytes_once_purged(), caller.bytes_at_first);
}

TEST(Passing, WaitsForTheSlowestReaderButOnlySoFar) {
  Caller caller(2 * kMiB, 100 * kKiB);
  const auto fill = caller.lead(kKey);
  Nudged nudged;
  fill->fetched_by(&nudged);
  auto quick = std::make_unique<Reader>(fill, SIZE_MAX);
  auto slow = std::make_unique<Reader>(fill, 1000);
  ASSERT_TRUE(caller.begin(*fill, {.declared = false}));
  quick->begin();
  slow->begin();
  std::uint64_t brought = 0;
  const auto bring = [&] {
    ASSERT_TRUE(caller.append(*fill, body_of(1, 20'000, brought)));
    brought += 20'000;
    quick->turn();
  };
  while (fill->may_go_on()) bring();
  EXPECT_GT(brought, Fill::kWindow);
  EXPECT_LE(brought, Fill::kWindow + 20'000);
  EXPECT_EQ(nudged.nudged, 0) << "who waited, waited before the pause";
  // The quick one waits for more: looked at, but it is not enough.
  quick->turn();
  EXPECT_EQ(nudged.nudged, 1);
  EXPECT_FALSE(fill->may_go_on());
  slow.reset();
  EXPECT_EQ(nudged.nudged, 2) << "nobody is in the way any more";
  EXPECT_TRUE(fill->may_go_on());
  bring();
  quick.reset();
  EXPECT_GT(nudged.nudged, 2);
  EXPECT_TRUE(fill->may_go_on()) << "for nobody";
  fill->fetched_by(nullptr);
  caller.store.cut(*fill);
}

TEST(Passing, WhatIsKeptNeverWaits) {
  Caller caller(8 * kMiB, 2 * kMiB);
  const auto fill = caller.lead(kKey);
  Waiter waiter;
  ASSERT_TRUE(fill->follow(waiter, 1));
  ASSERT_TRUE(caller.begin(*fill, {.declared = false}));
  ASSERT_TRUE(caller.append(*fill, body_of(1, 2 * Fill::kWindow)));
  EXPECT_TRUE(fill->may_go_on());
  fill->unfollow(waiter);
}

}  // namespace
}  // namespace clockwise::cache
