// Many threads at one store: who fetches, follows, purges, invalidates and tidies at once, with
// contents that tell which key, variant and version they are of.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/stores.h"

namespace clockwise::cache {
namespace {

using test::body_of;
using test::kKiB;
using test::kMiB;
using test::mixed;
using test::Request;
using State = Fill::State;

constexpr std::uint64_t kPages = 120;
constexpr std::uint64_t kMost = 256 * kKiB;

class Signal final : public Fill::Follower, public Fill::Fetcher {
 public:
  void wake() noexcept override { set(); }
  void nudge() noexcept override { set(); }
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_set_; });
    is_set_ = false;
  }

 private:
  void set() noexcept {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) {
  std::uint64_t seen = to.load();
  while (seen < value && !to.compare_exchange_weak(seen, value)) {
  }
}

// What the origin has, and what nobody may get any more.
struct Page {
  std::atomic<std::uint64_t> version{1};
  std::atomic<std::uint64_t> least{0};        // older ones were purged or invalidated
  std::atomic<std::uint64_t> least_fresh{0};  // older ones were purged softly
};

struct Origin {
  static std::string key(std::uint64_t page) {
    return "http://h" + std::to_string(page % 4) + "/d" + std::to_string(page % 7) + "/" +
           std::to_string(page);
  }
  static std::string tag(std::uint64_t page) { return "t" + std::to_string(page % 5); }
  static bool varies(std::uint64_t page) { return page % 3 == 0; }
  static std::uint64_t seed(std::uint64_t page, std::uint64_t variant, std::uint64_t version) {
    return mixed((page * 4 + variant) << 32U | version);
  }
  // Some do not fit behind their head, and some are not kept at all.
  static std::uint64_t size(std::uint64_t page, std::uint64_t version) {
    if (page % 40 == 2) return 3 * kMost + version;
    return mixed(page + 1000 * version) % (page % 10 == 1 ? 200'000 : 6'000);
  }

  std::array<Page, kPages> pages;
};

class World {
 public:
  World() : store(3 * kMiB, kMost) {}

  Origin origin;
  Store store;
  std::atomic<std::int64_t> now{1'000'000};
  // What came about.
  std::atomic<std::uint64_t> hits{0}, led{0}, followed{0}, confirmed{0}, through{0};
};

// One who asks. Faults are counted, so that a broken store does not drown in messages.
class Client {
 public:
  Client(World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  std::uint64_t faults() const { return faults_; }

  void ask() {
    // Some are asked for by many at once.
    page_ = up_to(1) > 0 ? up_to(kPages - 1) : up_to(9);
    variant_ = up_to(1);
    key_ = Origin::key(page_);
    const Page& page = world_.origin.pages[page_];
    least_ = page.least.load();
    least_fresh_ = page.least_fresh.load();
    const Request& request = requests_[variant_];
    const Wanted wanted{.hash = world_.store.hash(key_),
                        .key = key_,
                        .octets = request.octets,
                        .fields = request.head.fields};
    const std::int64_t now = world_.now.fetch_add(1);
    const auto found = world_.store.find(wanted, now);
    if (found.object) {
      check_found(*found.object);
      if (!found.object->made_stale() && up_to(19) > 0) return use(*found.object);
    }
    if (found.pass && !found.probe) return;
    auto joined = world_.store.join(wanted, found.object, found.probe || up_to(19) == 0, now);
    if (joined.object) check_found(*joined.object);
    if (!joined.fill) return;
    if (joined.leads)
      lead(joined.fill, joined.object);
    else
      follow(*joined.fill);
  }

 private:
  std::uint64_t up_to(std::uint64_t most) { return random_() % (most + 1); }
  void expect(bool right) { faults_ += right ? 0 : 1; }

  // What it says that it is.
  struct Known {
    std::uint64_t version, variant, size;
    std::uint64_t seed;
  };
  Known known(const Object& object) {
    expect(object.key() == key_);
    Known out{};
    out.version = std::stoull("0" + std::string(object.field("x-version")));
    out.variant = std::stoull("0" + std::string(object.field("x-variant")));
    out.size = Origin::size(page_, out.version);
    out.seed = Origin::seed(page_, out.variant, out.version);
    return out;
  }
  bool fits(const Known& of) const { return of.variant == (Origin::varies(page_) ? variant_ : 0); }

  void check_found(const Object& object) {
    const Known is = known(object);
    expect(fits(is));
    expect(is.version >= least_);
    expect(is.version >= least_fresh_ || object.made_stale());
    expect(object.size() == is.size);
    expect(object.size() <= kMost);
  }
  void use(const Object& object) {
    object.touch();
    const Known is = known(object);
    const std::uint64_t from = up_to(object.size());
    expect(test::read(object, from, is.size) == body_of(is.seed, is.size - from, from));
    ++world_.hits;
  }

  void lead(const std::shared_ptr<Fill>& fill, const ObjectRef& old) {
    ++world_.led;
    Signal signal;
    fill->fetched_by(&signal);
    fetch(*fill, old, signal);
    fill->fetched_by(nullptr);
    if (up_to(3) == 0 && fill->state() == State::done) {
      const ObjectRef object = fill->object();
      expect(object->key() == key_);
    }
  }
  void fetch(Fill& fill, const ObjectRef& old, Signal& signal) {
    const std::int64_t now = world_.now.load();
    const std::uint64_t version = world_.origin.pages[page_].version.load();
    if (up_to(29) == 0) return world_.store.fail(fill, {});
    if (up_to(29) == 0) return pass(fill, 30);
    const std::uint64_t variant = Origin::varies(page_) ? variant_ : 0;
    const std::string head = "X-Version: " + std::to_string(version) +
                             "\r\nX-Variant: " + std::to_string(variant) + "\r\n";
    const Request& request = requests_[variant_];
    const auto named = selectors(Origin::varies(page_) ? Lines{"A"} : Lines{}, request.octets,
                                 request.head.fields);
    const std::string tag = Origin::tag(page_);
    Draft draft;
    draft.head = head;
    draft.tags = tag;
    draft.selectors = named;
    draft.terms.received_ms = now;
    draft.terms.lifetime = static_cast<std::uint32_t>(up_to(5));
    draft.terms.for_authorized = up_to(1) > 0;
    const std::uint64_t size = Origin::size(page_, version);
    if (up_to(1) > 0 && size <= kMost) draft.length = size;
    if (old && known(*old).version == version) {
      ++world_.confirmed;
      world_.store.confirm(fill, old, draft, 3, now);
      return;
    }
    if (!world_.store.begin(fill, draft, now)) return pass(fill, 0);
    bring(fill, Origin::seed(page_, variant, version), size, signal);
  }
  void pass(Fill& fill, std::int64_t remember_ms) {
    world_.store.pass(fill, remember_ms, world_.now.load());
  }
  void bring(Fill& fill, std::uint64_t seed, std::uint64_t size, Signal& signal) {
    const bool breaks = up_to(19) == 0;
    for (std::uint64_t at = 0; at < size;) {
      while (!fill.may_go_on()) signal.await();
      const std::uint64_t n = std::min(1 + up_to(size > kMost ? 100'000 : 20'000), size - at);
      expect(world_.store.append(fill, body_of(seed, n, at), kMost, world_.now.load()));
      at += n;
      if (breaks && up_to(1) == 0) {
        return world_.store.cut(fill);
      }
      if (up_to(3) == 0) std::this_thread::yield();
    }
    world_.store.complete(fill, 3);
  }

  void follow(Fill& fill) {
    Signal signal;
    if (!fill.follow(signal, 3)) return;
    ++world_.followed;
    if (up_to(9) > 0) {
      while (fill.wait(signal, State::waiting, 0)) signal.await();
      const State state = fill.state();
      if (state == State::streaming || state == State::done) read_along(fill, signal);
    }
    fill.unfollow(signal);
  }
  void read_along(Fill& fill, Signal& signal) {
    const ObjectRef object = fill.object();
    const Known is = known(*object);
    expect(is.version >= least_);
    expect(is.version >= least_fresh_);
    const Request& request = requests_[variant_];
    const bool matching = matches(unpack(object->selectors()), request.octets, request.head.fields);
    expect(matching == fits(is));
    if (!matching) return;
    const bool leaves = up_to(9) == 0;
    Cursor cursor(*object, 0);
    while (true) {
      const State state = fill.state();
      const std::uint64_t there = object->size();
      while (cursor.offset() < there) {
        const std::string_view run = cursor.run(there);
        expect(run == body_of(is.seed, run.size(), cursor.offset()));
        cursor.advance(run.size());
      }
      if (leaves && up_to(1) == 0) return;
      if (state == State::done && there > kMost) ++world_.through;
      if (state == State::done) return expect(there == is.size && fill.length() == is.size);
      if (state == State::cut) return expect(there <= is.size);
      if (fill.wait(signal, State::streaming, there)) signal.await();
    }
  }

  World& world_;
  std::mt19937_64 random_;
  const std::array<Request, 2> requests_{Request("A: 0"), Request("A: 1")};
  std::uint64_t page_ = 0, variant_ = 0, least_ = 0, least_fresh_ = 0, faults_ = 0;
  std::string key_;
};

// The origin changes what it has, then says so. From the answer on nobody gets the old.
class Publisher {
 public:
  Publisher(World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  void change() {
    const std::uint64_t page = random_() % kPages;
    PurgeRule rule{.text = Origin::key(page), .soft = random_() % 3 == 0};
    switch (random_() % 16) {
      case 0:
        rule.scope = PurgeScope::host;
        rule.text = "h" + std::to_string(page % 4);
        return purge(rule, [&](std::uint64_t other) { return other % 4 == page % 4; });
      case 1:
        rule.scope = PurgeScope::prefix;
        return purge(
            rule, [&](std::uint64_t other) { return Origin::key(other).starts_with(rule.text); });
      case 2:
      case 3:
        rule.scope = PurgeScope::tag;
        rule.text = Origin::tag(page);
        return purge(rule, [&](std::uint64_t other) { return other % 5 == page % 5; });
      case 4:
        if (random_() % 4 > 0) break;
        rule.scope = PurgeScope::all;
        return purge(rule, [](std::uint64_t) { return true; });
      case 5:
      case 6:
      case 7:
      case 8:
        return invalidate(page);
      default:
        break;
    }
    rule.scope = PurgeScope::url;
    purge(rule, [&](std::uint64_t other) { return other == page; });
  }

 private:
  void invalidate(std::uint64_t which) {
    Page& page = world_.origin.pages[which];
    const std::uint64_t version = ++page.version;
    world_.store.invalidate(Origin::key(which));
    raise(page.least, version);
  }
  template <class Names>
  void purge(const PurgeRule& rule, Names names) {
    std::array<std::uint64_t, kPages> versions{};
    for (std::uint64_t i = 0; i < kPages; ++i)
      if (names(i)) versions[i] = ++world_.origin.pages[i].version;
    world_.store.purge(rule);
    for (std::uint64_t i = 0; i < kPages; ++i) {
      Page& page = world_.origin.pages[i];
      raise(rule.soft ? page.least_fresh : page.least, versions[i]);
    }
  }

  World& world_;
  std::mt19937_64 random_;
};

TEST(StoreThreads, GiveWhatTheOriginHasAndNothingThatWasPurged) {
  constexpr int kClients = 5, kAsks = 6'000, kChanges = 1'500, kSweeps = 3'000;
  World world;
  const std::uint64_t at_first = world.store.stats().bytes;
  std::atomic<std::uint64_t> faults{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kClients; ++i)
      threads.emplace_back([&, i] {
        Client client(world, static_cast<std::uint64_t>(i));
        for (int n = 0; n < kAsks; ++n) client.ask();
        faults += client.faults();
      });
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        Publisher publisher(world, static_cast<std::uint64_t>(100 + i));
        for (int n = 0; n < kChanges; ++n) {
          publisher.change();
          std::this_thread::yield();
        }
      });
    threads.emplace_back([&] {
      for (int n = 0; n < kSweeps; ++n) {
        world.store.sweep(world.now.load());
        const Stats stats = world.store.stats();
        faults += stats.bytes > stats.limit ? 1 : 0;
        std::this_thread::yield();
      }
    });
  }
  EXPECT_EQ(faults, 0U);
  EXPECT_GT(world.hits, 1000U);
  EXPECT_GT(world.led, 1000U);
  EXPECT_GT(world.followed, 10U);
  EXPECT_GT(world.confirmed, 10U);
  EXPECT_GT(world.through, 0U);
  world.store.purge({});
  EXPECT_EQ(world.store.stats().bytes, at_first);
  EXPECT_EQ(world.store.stats().objects, 0U);
}

}  // namespace
}  // namespace clockwise::cache
