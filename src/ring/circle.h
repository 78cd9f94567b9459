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
    std::string name;     // of the function, for Layout::keying
    int bits;             // of the position of a point, 15 to 64
    KeyPart part;         // of a key
    int key_bits = bits;  // of the position of a key; fewer where the peer cuts its hash
  };
  // Who owns a position that two servers share: the one listed first (another order would be
  // another ring where that occurs), or something else decides. listed: the list decided more than
  // ties.
  enum class Ties : std::uint8_t { by_order, settled, listed };

  // `points` in any order; of equal positions the owner must stand first. `servers` is the length
  // of the list.
  CircleRing(Hashing hashing, Rule rule, Ties ties, Points points, std::size_t servers);

  // For functions without a state: `hash` of CircleRing::Hashing.
  template <Position (*Function)(std::string_view) noexcept>
  static Position hash_with(const Ring&, std::string_view key) noexcept {
    return Function(key);
  }

  // REQUIRES: also, that a key can have the position (`key_bits`).
  ServerIndex owner(Position position) const noexcept override {
    return owners_.data()[arc_of(position)];
  }

 private:
  struct Arcs;

  std::optional<Point> walk(Position position, const Excluded& excluded) const noexcept override;

  [[nodiscard]] std::size_t bisected(Position position) const;
  void lay_out();
  void lay_out_successors(Arcs& arcs) const;
  void lay_out_nearest(Arcs& arcs) const;
  void lay_out_bisection(Arcs& arcs) const;
  void index_arcs();
  void count_shares(std::size_t servers);

  [[nodiscard]] std::size_t arc_of(Position position) const noexcept;
  [[nodiscard]] bool any_remains(const Excluded& excluded) const noexcept;
  [[nodiscard]] std::optional<Point> walk_up(Position position,
                                             const Excluded& excluded) const noexcept;
  [[nodiscard]] std::optional<Point> walk_both(Position position,
                                               const Excluded& excluded) const noexcept;

  const Rule rule_;
  const int bits_;      // of the position of a point
  const Position top_;  // the last position of a key
  int shift_ = 63;
  bool even_ = true;  // no bucket holds so many arcs that a walk along it would be slow
  LargeVector<std::uint32_t> first_;  // bucket b begins at the first arc whose end is >= b << shift
  // What a look-up touches lies apart from points_: half the memory, so more of it stays cached.
  LargeVector<Position> ends_;
  LargeVector<ServerIndex> owners_;
  std::vector<bool> has_points_;  // by server; a share of 0 does not tell: its points may be ties
};

}  // namespace clockwise::ring
