#include "ring/remap.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

namespace clockwise::ring {
namespace {

using Indexes = std::vector<ServerIndex>;

constexpr ServerIndex kNobody = ~ServerIndex{0};

Indexes by_name(std::span<const std::string> names) {
  Indexes order(names.size());
  std::iota(order.begin(), order.end(), ServerIndex{0});
  std::sort(order.begin(), order.end(),
            [&](ServerIndex a, ServerIndex b) { return names[a] < names[b]; });
  return order;
}

// The servers of both lists, and who is who.
struct Lists {
  Lists(std::span<const std::string> before, std::span<const std::string> after)
      : givers(by_name(before)),
        takers(by_name(after)),
        rank(after.size()),
        twin(before.size(), kNobody) {
    for (std::size_t i = 0; i < takers.size(); ++i) rank[takers[i]] = static_cast<ServerIndex>(i);
    auto taker = takers.begin();
    for (const ServerIndex giver : givers) {
      while (taker != takers.end() && after[*taker] < before[giver]) ++taker;
      if (taker != takers.end() && after[*taker] == before[giver]) twin[giver] = *taker;
    }
  }

  Indexes givers, takers;  // of the lists before and after, in the order of their names
  Indexes rank;            // place of a server of the list after in `takers`
  Indexes twin;            // the server after that has the name of a server before, or kNobody
};

// What one server gives away, by the server that takes it.
class Row {
 public:
  explicit Row(const Lists& lists) : lists_(lists), sums_(lists.takers.size()) {}

  // REQUIRES: size > 0.
  void add(ServerIndex to, Arc size) {
    if (sums_[to] == 0) takers_.push_back(to);
    sums_[to] += size;
  }

  // Appends all that was added as moves of `from`, its own part left out, and begins anew.
  void flush(ServerIndex from, Arc whole, Moves& moves) {
    if (takers_.size() * 8 < sums_.size())
      std::sort(takers_.begin(), takers_.end(),
                [&](ServerIndex a, ServerIndex b) { return lists_.rank[a] < lists_.rank[b]; });
    else
      takers_ = lists_.takers;
    for (const ServerIndex to : takers_) {
      const Arc sum = std::exchange(sums_[to], 0);
      if (sum > 0 && lists_.twin[from] != to) moves.push_back({from, to, share_of(sum, whole)});
    }
    takers_.clear();
  }

 private:
  const Lists& lists_;
  std::vector<Arc> sums_;  // by server of the list after
  Indexes takers_;         // those with a sum
};

// How many pieces each giver has in a change; an end for each, see deal().
struct Tally {
  std::vector<std::size_t> ends;
  std::size_t pieces = 0;
  std::size_t most_pairs = 0;
};

// A matrix of at most 32 MiB.
constexpr std::size_t kMatrixCells = std::size_t{1} << 22;

// Many pieces: into a matrix. REQUIRES: no pair has all 2^64 positions.
template <class Moved>
void sum_in_matrix(const Lists& lists, Arc whole, Moves& moves, Moved moved) {
  const std::size_t width = lists.takers.size();
  LargeVector<Position> sums(lists.givers.size() * width);
  moved([&](ServerIndex from, ServerIndex to, Position last) {
    sums[from * width + to] += last + 1;
  });
  for (const ServerIndex from : lists.givers)
    for (const ServerIndex to : lists.takers)
      if (const Position sum = sums[from * width + to]; sum > 0)
        moves.push_back({from, to, share_of(sum, whole)});
}

// Few pieces for so many servers: dealt out by giver, then one giver after the other.
template <class Moved>
void sum_by_giver(const Lists& lists, Arc whole, Tally& tally, Moves& moves, Moved moved) {
  struct Piece {
    ServerIndex to;
    Position last;
  };
  std::vector<std::size_t>& ends = tally.ends;
  const auto pieces = std::make_unique_for_overwrite<Piece[]>(tally.pieces);
  // ends[i] is where the pieces of giver i start; dealing moves it to where they end.
  moved(
      [&](ServerIndex from, ServerIndex to, Position last) { pieces[ends[from]++] = {to, last}; });
  Row row(lists);
  for (const ServerIndex from : lists.givers) {
    for (std::size_t i = from == 0 ? 0 : ends[from - 1]; i < ends[from]; ++i)
      row.add(pieces[i].to, static_cast<Arc>(pieces[i].last) + 1);
    row.flush(from, whole, moves);
  }
}

// Sums up what `visit` tells, in any order: `visit(piece)` calls `piece(from, to, last)` for each
// run of `last` + 1 positions. It is called twice, which costs less than to remember what it said.
// REQUIRES: no pair has all 2^64 positions.
template <class Visit>
Moves sum_pieces(const Lists& lists, Arc whole, Visit visit) {
  const auto moved = [&](auto take) {
    visit([&](ServerIndex from, ServerIndex to, Position last) {
      if (lists.twin[from] != to) take(from, to, last);
    });
  };
  Tally tally{std::vector<std::size_t>(lists.givers.size() + 1)};
  moved([&](ServerIndex from, ServerIndex, Position) { ++tally.ends[from + 1]; });
  for (const std::size_t pieces : tally.ends) {
    tally.pieces += pieces;
    tally.most_pairs += std::min(pieces, lists.takers.size());
  }
  std::partial_sum(tally.ends.begin(), tally.ends.end(), tally.ends.begin());

  Moves moves;
  moves.reserve(tally.most_pairs);
  const std::size_t cells = lists.givers.size() * lists.takers.size();
  if (cells <= kMatrixCells && tally.pieces >= cells / 4)
    sum_in_matrix(lists, whole, moves, moved);
  else
    sum_by_giver(lists, whole, tally, moves, moved);
  return moves;
}

// Walks both circles upwards. Without a branch on which of them has the nearer end: nobody could
// predict it.
template <class Visit>
void walk_arcs(const Layout& before, const Layout& after, Visit piece) {
  const Position top = before.ends.back();
  std::size_t i = 0, j = 0;
  Position start = 0;
  for (;;) {
    const Position old_end = before.ends[i], new_end = after.ends[j];
    const Position end = std::min(old_end, new_end);
    piece(before.owners[i], after.owners[j], end - start);
    if (end == top) return;
    start = end + 1;
    i += old_end == end ? 1 : 0;
    j += new_end == end ? 1 : 0;
  }
}

bool has_one_owner(std::span<const ServerIndex> owners) {
  return std::ranges::all_of(owners, [&](ServerIndex owner) { return owner == owners.front(); });
}

Moves compare_circles(const Lists& lists, const Layout& before, const Layout& after) {
  if (has_one_owner(before.owners) && has_one_owner(after.owners)) {
    const ServerIndex from = before.owners.front(), to = after.owners.front();
    return lists.twin[from] == to ? Moves{} : Moves{{from, to, 1}};
  }
  return sum_pieces(lists, before.positions, [&](auto piece) { walk_arcs(before, after, piece); });
}

// After how many positions two tables repeat themselves, or all there are if that is less.
Arc common_period(const Layout& before, const Layout& after) {
  const Arc sizes = static_cast<Arc>(before.table.size()) * after.table.size();
  return std::min(sizes / std::gcd(before.table.size(), after.table.size()), before.positions);
}

// The slots of the table before, all those of a server together.
std::vector<Indexes> slots_by_owner(const Layout& layout, std::size_t servers) {
  std::vector<Indexes> slots(servers);
  for (std::size_t slot = 0; slot < layout.table.size(); ++slot)
    slots[layout.table[slot]].push_back(static_cast<ServerIndex>(slot));
  return slots;
}

Moves compare_tables(const Lists& lists, const Layout& before, const Layout& after) {
  const Arc period = common_period(before, after);
  const Arc rounds = before.positions / period, rest = before.positions % period;
  const std::vector<Indexes> slots = slots_by_owner(before, lists.givers.size());
  Moves moves;
  Row row(lists);
  for (const ServerIndex from : lists.givers) {
    for (const ServerIndex slot : slots[from])
      for (Arc at = slot; at < period; at += before.table.size())
        row.add(after.table[static_cast<std::size_t>(at) % after.table.size()],
                rounds + (at < rest ? 1 : 0));
    row.flush(from, before.positions, moves);
  }
  return moves;
}

// The text of key `i`: 16 hexadecimal digits of SplitMix64, which has no pattern a hash could meet.
std::array<char, 16> sampled_key(std::uint64_t i) {
  std::uint64_t bits = (i + 1) * 0x9e37'79b9'7f4a'7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58'476d'1ce4'e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d0'49bb'1331'11eb;
  bits ^= bits >> 31;
  std::array<char, 16> text;
  for (char& digit : text) {
    digit = "0123456789abcdef"[bits & 15];
    bits >>= 4;
  }
  return text;
}

Indexes owners_of_sample(const Ring& ring, std::uint64_t first) {
  Indexes owners(kSampledKeys);
  for (std::uint32_t i = 0; i < kSampledKeys; ++i) {
    const std::array<char, 16> key = sampled_key(first + i);
    owners[i] = ring.owner(ring.hash({key.data(), key.size()}));
  }
  return owners;
}

Moves compare_samples(const Lists& lists, const Ring& before, const Ring& after, Keys keys) {
  const Indexes from = owners_of_sample(before, 0);
  const Indexes to = owners_of_sample(after, keys == Keys::same ? 0 : kSampledKeys);
  return sum_pieces(lists, kSampledKeys, [&](auto piece) {
    for (std::uint32_t i = 0; i < kSampledKeys; ++i) piece(from[i], to[i], 0);
  });
}

bool owns_something(const RingView& view) { return view.ring != nullptr && !view.ring->empty(); }

bool same_positions(const Layout& before, const Layout& after) {
  return before.keying == after.keying && before.positions == after.positions;
}

}  // namespace

Account compare(const RingView& before, const RingView& after, Keys keys) {
  if (!owns_something(before) || !owns_something(after)) return {};
  const Lists lists(before.names, after.names);
  const Layout& old_layout = before.ring->layout();
  const Layout& new_layout = after.ring->layout();
  if (keys == Keys::same && same_positions(old_layout, new_layout)) {
    if (!old_layout.ends.empty() && !new_layout.ends.empty())
      return {true, compare_circles(lists, old_layout, new_layout)};
    if (!old_layout.table.empty() && !new_layout.table.empty() &&
        common_period(old_layout, new_layout) <= kLongestPeriod)
      return {true, compare_tables(lists, old_layout, new_layout)};
  }
  return {false, compare_samples(lists, *before.ring, *after.ring, keys)};
}

}  // namespace clockwise::ring
