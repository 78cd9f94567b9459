#include "cache/arena.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "base/sanitizer.h"

namespace clockwise::cache {
namespace {

constexpr std::size_t kHeader = 8;
constexpr std::size_t kSentinel = 16;
constexpr std::size_t kKiB = 1024, kMiB = kKiB * kKiB, kGiB = kKiB * kMiB;

std::size_t most_of(const Arena& arena) { return arena.size() - kSentinel - kHeader; }

// An arena and what must be true of it. Each piece is full of a pattern of its own; all that lies
// between the pieces must be free, one free piece a gap.
class Model {
 public:
  explicit Model(std::size_t size) : arena_(size) {
    void* const first = arena_.take(1);
    begin_ = static_cast<char*>(first) - kHeader;
    arena_.give_back(first);
  }

  void take(std::size_t size) {
    const std::size_t largest = largest_gap();
    auto* const piece = static_cast<char*>(arena_.take(size));
    if (piece == nullptr)
      RC_ASSERT(!must_fit(size, largest));
    else
      hold(piece, size, largest);
  }
  void take_up_to(std::size_t size, std::size_t least) {
    const std::size_t largest = largest_gap();
    const std::span<char> piece = arena_.take_up_to(size, least);
    if (piece.empty()) {
      RC_ASSERT(size == 0 || !must_fit(least, largest));
      return;
    }
    RC_ASSERT(piece.size() >= least && piece.size() <= size);
    RC_ASSERT(piece.size() == size || !must_fit(size, largest));
    // What there is comes from the largest class.
    RC_ASSERT(piece.size() == size || (piece.size() + kHeader) * 17 > largest * 16);
    hold(piece.data(), piece.size(), largest);
  }
  void shrink(std::size_t which, std::size_t by) {
    if (pieces_.empty()) return;
    const auto piece = nth(which);
    const std::size_t size = piece->second.size - by % (piece->second.size + 1);
    arena_.shrink(piece->first, size);
    piece->second.size = size;
    check(*piece);
  }
  void give_back(std::size_t which) {
    if (pieces_.empty()) return;
    const auto piece = nth(which);
    check(*piece);
    arena_.give_back(piece->first);
    pieces_.erase(piece);
  }
  void check_account() const {
    std::size_t sum = 0;
    for (const auto& [begin, piece] : pieces_) sum += Arena::cost(piece.size);
    RC_ASSERT(arena_.used() == sum);
  }
  void give_all_back() {
    for (const auto& piece : pieces_) check(piece);
    while (!pieces_.empty()) give_back(pieces_.size() * 7 / 3);
    RC_ASSERT(arena_.used() == 0u);
    RC_ASSERT(largest_gap() == arena_.size() - kSentinel);
    take(most_of(arena_));
    RC_ASSERT(pieces_.size() == 1u);
    give_back(0);
  }

 private:
  struct Piece {
    std::size_t size;
    char pattern;
  };
  using Pieces = std::map<char*, Piece>;

  // Free pieces are looked for by classes, a sixteenth wide.
  static bool must_fit(std::size_t size, std::size_t gap) {
    return Arena::cost(size) <= gap - gap / 17;
  }
  static void check(const Pieces::value_type& held) {
    const auto& [begin, piece] = held;
    const std::string_view octets(begin, piece.size);
    RC_ASSERT(octets.find_first_not_of(piece.pattern) == octets.npos);
  }
  Pieces::iterator nth(std::size_t which) {
    return std::next(pieces_.begin(), static_cast<std::ptrdiff_t>(which % pieces_.size()));
  }
  void hold(char* begin, std::size_t size, std::size_t gap) {
    RC_ASSERT(reinterpret_cast<std::uintptr_t>(begin) % alignof(std::uint64_t) == 0u);
    RC_ASSERT(Arena::cost(size) <= gap);
    RC_ASSERT(begin >= begin_ + kHeader);
    RC_ASSERT(begin + size <= begin_ + arena_.size());
    const char pattern = ++last_pattern_;
    std::memset(begin, pattern, size);
    RC_ASSERT(pieces_.emplace(begin, Piece{size, pattern}).second);
  }
  std::size_t largest_gap() const {
    std::size_t largest = 0;
    char* end = begin_;
    for (const auto& [begin, piece] : pieces_) {
      RC_ASSERT(begin - kHeader >= end);
      largest = std::max<std::size_t>(largest, begin - kHeader - end);
      end = begin - kHeader + Arena::cost(piece.size);
    }
    return std::max<std::size_t>(largest, begin_ + arena_.size() - kSentinel - end);
  }

  Arena arena_;
  char* begin_ = nullptr;
  Pieces pieces_;
  char last_pattern_ = 0;
};

struct Step {
  enum class Kind { take, take_up_to, shrink, give_back };
  Kind kind;
  std::size_t size;
  std::size_t other;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  constexpr std::array kNames{"take ", "take_up_to ", "shrink ", "give_back "};
  return out << kNames[static_cast<std::size_t>(step.kind)] << step.size << ' ' << step.other;
}

rc::Gen<Step> any_step(std::size_t arena) {
  const auto size = rc::gen::weightedOneOf<std::size_t>(
      {{8, rc::gen::inRange<std::size_t>(0, 100)},
       {8, rc::gen::inRange<std::size_t>(0, arena / 16)},
       {2, rc::gen::inRange<std::size_t>(0, arena + 100)},
       {1, rc::gen::element<std::size_t>(SIZE_MAX, SIZE_MAX - 8, SIZE_MAX - 24, SIZE_MAX / 2)}});
  using Kind = Step::Kind;
  return rc::gen::construct<Step>(
      rc::gen::element(Kind::take, Kind::take, Kind::take_up_to, Kind::shrink, Kind::give_back),
      size, rc::gen::inRange<std::size_t>(0, kMiB));
}

void run(Model& model, const Step& step) {
  switch (step.kind) {
    case Step::Kind::take:
      return model.take(step.size);
    case Step::Kind::take_up_to:
      return model.take_up_to(step.size, std::min(step.size, step.other % 4096));
    case Step::Kind::shrink:
      return model.shrink(step.other, step.size);
    case Step::Kind::give_back:
      return model.give_back(step.other);
  }
}

RC_GTEST_PROP(ArenaLaw, PiecesAreApartAndAllComesBackAsOne, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 256 * kKiB);
  const auto steps = *rc::gen::resize(600, rc::gen::container<std::vector<Step>>(any_step(size)));
  Model model(size);
  for (const Step& step : steps) {
    run(model, step);
    model.check_account();
  }
  model.give_all_back();
}

TEST(Arena, IsWholePages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, page - 1, page})
    EXPECT_EQ(Arena(size).size(), page) << size;
  EXPECT_EQ(Arena(page + 1).size(), 2 * page);
}

TEST(Arena, NoSystemHasSuchARange) {
  for (const std::size_t size : {32 * kGiB + 1, SIZE_MAX / 2, SIZE_MAX})
    EXPECT_THROW(Arena{size}, std::bad_alloc) << size;
}

TEST(Arena, APieceCostsAtMostItsHeaderAndTheRounding) {
  for (std::size_t size = 0; size < 1000; ++size) {
    EXPECT_GE(Arena::cost(size), size + kHeader);
    EXPECT_LT(Arena::cost(size), size + kHeader + 16);
    EXPECT_EQ(Arena::cost(size) % 16, 0U);
  }
  EXPECT_EQ(Arena::cost(0), 16U);
  EXPECT_EQ(Arena::cost(8), 16U);
  EXPECT_EQ(Arena::cost(9), 32U);
  for (std::size_t less = 0; less < 100; ++less)
    EXPECT_GE(Arena::cost(SIZE_MAX - less), SIZE_MAX - less) << "no overflow";
}

TEST(Arena, LendsAllItHasAndNotOneOctetMore) {
  for (const std::size_t size : {std::size_t{1}, 64 * kKiB, 3 * kMiB, 5 * kMiB + 12345}) {
    Arena arena(size);
    for (const std::size_t more :
         {most_of(arena) + 1, arena.size(), arena.size() + 1, 64 * kGiB, SIZE_MAX - 1, SIZE_MAX})
      EXPECT_EQ(arena.take(more), nullptr) << more;
    EXPECT_EQ(arena.used(), 0U);
    void* const all = arena.take(most_of(arena));
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(arena.used(), arena.size() - kSentinel);
    EXPECT_EQ(arena.take(0), nullptr);
    EXPECT_TRUE(arena.take_up_to(1, 0).empty());
    arena.give_back(all);
    EXPECT_EQ(arena.take_up_to(SIZE_MAX, most_of(arena)).size(), most_of(arena));
  }
}

TEST(Arena, NothingIsAPieceTooButNoneUpToNothing) {
  Arena arena(1);
  void* const one = arena.take(0);
  void* const other = arena.take(0);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(one, other);
  EXPECT_EQ(arena.used(), 2 * Arena::cost(0));
  EXPECT_TRUE(arena.take_up_to(0, 0).empty());
  EXPECT_EQ(arena.used(), 2 * Arena::cost(0));
}

TEST(Arena, LittlePiecesFillItToTheEnd) {
  Arena arena(64 * kKiB);
  std::vector<void*> pieces;
  while (void* const piece = arena.take(8)) pieces.push_back(piece);
  EXPECT_EQ(pieces.size(), (arena.size() - kSentinel) / 16);
  // Every other one: as much is free, but no two neighbours.
  for (std::size_t i = 0; i < pieces.size(); i += 2) arena.give_back(pieces[i]);
  EXPECT_EQ(arena.take(9), nullptr);
  EXPECT_EQ(arena.take_up_to(100, 8).size(), 8U);
}

TEST(Arena, LendsLessOnlyAsFarAsAsked) {
  Arena arena(64 * kKiB);
  const std::span<char> most = arena.take_up_to(most_of(arena) - 1000, 1);
  EXPECT_EQ(most.size(), most_of(arena) - 1000);
  EXPECT_TRUE(arena.take_up_to(5000, 1000).empty());
  const std::size_t left = arena.size() - kSentinel - arena.used() - kHeader;
  EXPECT_EQ(arena.take_up_to(5000, left).size(), left);
  EXPECT_EQ(arena.used(), arena.size() - kSentinel);
}

TEST(Arena, WhatIsShrunkAwayJoinsTheFreePieceBehindIt) {
  Arena arena(64 * kKiB);
  void* const piece = arena.take(32 * kKiB);
  arena.shrink(piece, 100);
  EXPECT_EQ(arena.used(), Arena::cost(100));
  EXPECT_NE(arena.take(most_of(arena) - Arena::cost(100)), nullptr);
  EXPECT_EQ(arena.used(), arena.size() - kSentinel);
}

// Pages of the arena that are in memory, in octets.
std::size_t resident(void* first, const Arena& arena) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(arena.size() / page);
  EXPECT_EQ(::mincore(static_cast<char*>(first) - kHeader, arena.size(), pages.data()), 0);
  return page * std::ranges::count_if(pages, [](unsigned char state) { return (state & 1) != 0; });
}

TEST(Arena, MemoryIsTouchedOnlyOnceItIsUsed) {
  // A large page would count as touched whole.
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  Arena arena(kGiB);
  void* const piece = arena.take(100 * kMiB);
  EXPECT_LT(resident(piece, arena), kMiB);
  std::memset(piece, 1, 10 * kMiB);
  EXPECT_LT(resident(piece, arena), 11 * kMiB);
  EXPECT_GE(resident(piece, arena), 10 * kMiB);
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

#if CLOCKWISE_ADDRESS_SANITIZER
TEST(Arena, UseOfWhatIsNotLentIsSeen) {
  const char* const kSeen = "AddressSanitizer";
  Arena arena(kMiB);
  auto* const piece = static_cast<char*>(arena.take(100));
  EXPECT_DEATH(piece[100] = 1, kSeen);
  arena.shrink(piece, 60);
  EXPECT_DEATH(piece[60] = 1, kSeen);
  piece[59] = 1;
  auto* const next = static_cast<char*>(arena.take(5000));
  next[0] = next[4999] = 1;
  EXPECT_DEATH(next[6000] = 1, kSeen);
  arena.give_back(piece);
  EXPECT_DEATH(piece[8] = 1, kSeen) << "before it are the links";
  arena.give_back(next);
  EXPECT_DEATH(next[0] = 1, kSeen) << "within a larger free piece";
}
#else
TEST(Arena, IsAsLargeAsItMayBe) {
  Arena arena(32 * kGiB);
  auto* const all = static_cast<char*>(arena.take(most_of(arena)));
  ASSERT_NE(all, nullptr);
  all[most_of(arena) - 1] = 1;
  arena.shrink(all, most_of(arena) - 2000);
  EXPECT_EQ(arena.take(2000), nullptr);
  void* const end = arena.take(1000);
  ASSERT_NE(end, nullptr);
  arena.give_back(all);
  EXPECT_EQ(arena.take(32 * kGiB), nullptr);
  void* const most = arena.take_up_to(SIZE_MAX, 31 * kGiB).data();
  EXPECT_EQ(most, all);
  arena.give_back(end);
  arena.give_back(most);
  EXPECT_EQ(arena.used(), 0U);
  EXPECT_EQ(arena.take(most_of(arena)), all);
}
#endif

}  // namespace
}  // namespace clockwise::cache
