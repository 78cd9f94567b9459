// The ring as a circle of arcs: what nearly all schemes come to, once their points are known.
//
// Keys find their arc through an index over the top bits of the position: as many buckets as arcs,
// so a look-up is one step to the bucket and one or two along it.
#pragma once

#include <string>
#include <vector>

#include "ring/ring.h"

namespace clockwise::ring {

// How a position finds its point.
enum class Rule : std::uint8_t {
  successor,  // the first point at or after it, wrapping at the top
  nearest,    // the nearer of the points around it, the lower one of two at equal distance
  bisection,  // as successor, but without the wrap: past the last point it stays on that one.
              // A position shared by two servers belongs to the one that a bisection of the sorted
              // points meets first when it is hit exactly, else to the one added first.
};

class CircleRing final : public Ring {
 public:
  struct Hashing {
    KeyHash hash;
    std::string name;  // of the function, for Layout::keying
    int bits;          // of a position: 32 or 64
    std::string hash_tag;
  };
  // Which of two points at one position stands first.
  enum class Ties : std::uint8_t { by_order, settled };

  // `points` in any order; of equal positions the owner must stand first. `servers` is the length
  // of the list. Ties::by_order: the order of equal positions is that of the list of servers, so
  // that another order would be another ring; settled: it is decided by something else.
  CircleRing(Hashing hashing, Rule rule, Ties ties, std::vector<Point> points, std::size_t servers);

  // For functions without a state: `hash` of CircleRing::Hashing.
  template <Position (*Function)(std::string_view) noexcept>
  static Position hash_with(const Ring&, std::string_view key) noexcept {
    return Function(key);
  }

  ServerIndex owner(Position position) const noexcept override {
    return owners_.data()[arc_of(position)];
  }
  std::optional<Point> successor(Position position,
                                 std::span<const ServerIndex> excluded) const noexcept override;

 private:
  struct Arcs;

  void sort_points(std::vector<Point> unsorted);
  void lay_out(Arcs arcs);
  void index_arcs();
  void count_shares(std::size_t servers);

  [[nodiscard]] std::size_t arc_of(Position position) const noexcept;
  [[nodiscard]] bool may_remain(std::span<const ServerIndex> excluded) const noexcept;
  [[nodiscard]] std::optional<Point> walk_up(Position position,
                                             std::span<const ServerIndex> excluded) const noexcept;
  [[nodiscard]] std::optional<Point> walk_both(
      Position position, std::span<const ServerIndex> excluded) const noexcept;

  const Rule rule_;
  const int bits_;
  int shift_ = 63;
  bool even_ = true;  // no bucket holds so many arcs that a walk along it would be slow
  std::vector<std::uint32_t> first_;  // bucket b begins at the first arc whose end is >= b << shift
  // What a look-up touches lies apart from points_: half the memory, so more of it stays cached.
  std::vector<Position> ends_;
  std::vector<ServerIndex> owners_;
  std::vector<bool> has_points_;  // by server; a share of 0 does not tell: its points may be ties
};

}  // namespace clockwise::ring
