#include "ring/remap.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "ring/arc.h"

namespace clockwise::ring {
namespace {

// The names of both sides as numbers, ordered as the names are.
class Names {
 public:
  Names(std::span<const std::string> before, std::span<const std::string> after) {
    sorted_.assign(before.begin(), before.end());
    sorted_.insert(sorted_.end(), after.begin(), after.end());
    std::sort(sorted_.begin(), sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
  }

  // By server index.
  std::vector<std::uint32_t> numbers(std::span<const std::string> names) const {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(names.size());
    for (const std::string& name : names) {
      const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), name);
      numbers.push_back(static_cast<std::uint32_t>(found - sorted_.begin()));
    }
    return numbers;
  }

  std::string name(std::uint64_t number) const { return std::string(sorted_[number]); }

 private:
  std::vector<std::string_view> sorted_;
};

// Walks the arcs of one ring upwards.
class Cursor {
 public:
  Cursor(const Layout& layout, std::vector<std::uint32_t> names)
      : layout_(layout), names_(std::move(names)) {}

  // The last position of the arc that the cursor is in.
  Position end() const noexcept { return layout_.ends[at_]; }
  std::uint32_t owner() const noexcept { return names_[layout_.owners[at_]]; }
  void pass() noexcept { ++at_; }

 private:
  const Layout& layout_;
  std::vector<std::uint32_t> names_;  // by server
  std::size_t at_ = 0;
};

// Sums of arcs by (from, to). Arcs are gathered and folded now and then, which beats a hash table:
// most changes have few pairs, and a new list of all servers has too many for the caches.
class Account {
 public:
  void add(std::uint64_t from, std::uint64_t to, Arc arc) {
    if (sums_.size() == fold_at_) {
      fold();
      fold_at_ = std::max(kFoldAt, 2 * sums_.size());
    }
    sums_.push_back({from << 32 | to, arc});
  }

  std::vector<Move> moves(const Names& names) && {
    fold();
    std::vector<Move> moves;
    moves.reserve(sums_.size());
    for (const Sum& sum : sums_)
      moves.push_back(
          {names.name(sum.pair >> 32), names.name(sum.pair & 0xffff'ffff), share_of(sum.arc)});
    return moves;
  }

 private:
  struct Sum {
    std::uint64_t pair;
    Arc arc;
  };
  static constexpr std::size_t kFoldAt = 1 << 16;

  void fold() {
    std::sort(sums_.begin(), sums_.end(),
              [](const Sum& a, const Sum& b) { return a.pair < b.pair; });
    std::size_t kept = 0;
    for (const Sum& sum : sums_) {
      if (kept > 0 && sums_[kept - 1].pair == sum.pair)
        sums_[kept - 1].arc += sum.arc;
      else
        sums_[kept++] = sum;
    }
    sums_.resize(kept);
  }

  std::vector<Sum> sums_;
  std::size_t fold_at_ = kFoldAt;
};

bool owns_something(const RingView& view) { return view.ring != nullptr && !view.ring->empty(); }

}  // namespace

std::vector<Move> moved_arcs(const RingView& before, const RingView& after) {
  if (!owns_something(before) || !owns_something(after)) return {};
  const Names names(before.names, after.names);
  Cursor old_arc(before.ring->layout(), names.numbers(before.names));
  Cursor new_arc(after.ring->layout(), names.numbers(after.names));
  Account account;
  Arc start = 0;
  while (start < kWholeCircle) {
    const Position end = std::min(old_arc.end(), new_arc.end());
    const Arc next = static_cast<Arc>(end) + 1;
    if (old_arc.owner() != new_arc.owner())
      account.add(old_arc.owner(), new_arc.owner(), next - start);
    start = next;
    const bool old_ends = old_arc.end() == end, new_ends = new_arc.end() == end;
    if (old_ends) old_arc.pass();
    if (new_ends) new_arc.pass();
  }
  return std::move(account).moves(names);
}

}  // namespace clockwise::ring
