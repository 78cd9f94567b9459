#include "ring/remap.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ring/arc.h"

namespace clockwise::ring {
namespace {

// The names of both sides as numbers that are equal exactly when the names are.
class NameIds {
 public:
  std::vector<std::uint32_t> of(std::span<const std::string> names) {
    std::vector<std::uint32_t> ids;
    ids.reserve(names.size());
    for (const std::string& name : names) {
      const auto [entry, fresh] = ids_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
      if (fresh) names_.push_back(name);
      ids.push_back(entry->second);
    }
    return ids;
  }

  std::string_view name(std::uint32_t id) const { return names_[id]; }

 private:
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::vector<std::string_view> names_;
};

// Walks the points of one ring upwards; knows who owns the positions up to the next one.
class Cursor {
 public:
  Cursor(std::span<const Point> points, std::vector<std::uint32_t> ids)
      : points_(points), ids_(std::move(ids)) {
    load();
  }

  // The last position of the arc that the cursor is in.
  Position end() const noexcept { return end_; }
  std::uint32_t owner() const noexcept { return owner_; }

  // Onto the arc behind `position`. Of points at one place the first is the owner: skip the rest.
  void pass(Position position) noexcept {
    while (next_ < points_.size() && points_[next_].position == position) ++next_;
    load();
  }

 private:
  void load() noexcept {
    const bool wrapped = next_ == points_.size();
    end_ = wrapped ? std::numeric_limits<Position>::max() : points_[next_].position;
    owner_ = ids_[points_[wrapped ? 0 : next_].server];
  }

  std::span<const Point> points_;
  std::vector<std::uint32_t> ids_;
  std::size_t next_ = 0;
  Position end_ = 0;
  std::uint32_t owner_ = 0;
};

// Sums of arcs by (from, to).
class Account {
 public:
  void add(std::uint32_t from, std::uint32_t to, Arc arc) {
    arcs_[std::uint64_t{from} << 32 | to] += arc;
  }

  std::vector<Move> moves(const NameIds& ids) const {
    std::vector<Move> moves;
    moves.reserve(arcs_.size());
    for (const auto& [pair, arc] : arcs_)
      moves.push_back({std::string(ids.name(static_cast<std::uint32_t>(pair >> 32))),
                       std::string(ids.name(static_cast<std::uint32_t>(pair))), share_of(arc)});
    std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    });
    return moves;
  }

 private:
  std::unordered_map<std::uint64_t, Arc> arcs_;
};

bool owns_something(const RingView& view) { return view.ring != nullptr && !view.ring->empty(); }

}  // namespace

std::vector<Move> moved_arcs(const RingView& before, const RingView& after) {
  if (!owns_something(before) || !owns_something(after)) return {};
  NameIds ids;
  Cursor old_arc(before.ring->points(), ids.of(before.names));
  Cursor new_arc(after.ring->points(), ids.of(after.names));
  Account account;
  Arc start = 0;
  while (start < kWholeCircle) {
    const Position end = std::min(old_arc.end(), new_arc.end());
    const Arc next = static_cast<Arc>(end) + 1;
    if (old_arc.owner() != new_arc.owner())
      account.add(old_arc.owner(), new_arc.owner(), next - start);
    start = next;
    if (old_arc.end() == end) old_arc.pass(end);
    if (new_arc.end() == end) new_arc.pass(end);
  }
  return account.moves(ids);
}

}  // namespace clockwise::ring
