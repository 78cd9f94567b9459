// The hash ring: which server owns a key.
//
// Every placement scheme stands behind this one small interface; ring/scheme.h names them and
// builds one. A Ring is immutable, so any number of threads may ask it at once; it is built off the
// data path and replaced as a whole. Servers are known here by their index in the list the ring was
// built from; names, addresses and health live elsewhere (upstream/).
//
// A look-up is two steps: a key is hashed to a position, and each position has one owner.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/large_vector.h"
#include "ring/arc.h"
#include "ring/key_part.h"

namespace clockwise::ring {

using ServerIndex = std::uint32_t;
using Position = std::uint64_t;  // what a key hashes to; of longer hashes the first 64 bits

struct Point {
  Position position;
  ServerIndex server;

  friend bool operator==(const Point&, const Point&) = default;
};

using Points = LargeVector<Point>;

// How positions map to owners, for whoever compares two rings (ring/remap.h). Either a circle of
// arcs or a table; a ring that is neither (rendezvous, jump) can only be sampled.
struct Layout {
  // Rings of equal keying hash every key to the same position.
  std::string keying;
  // Positions are 0 to positions - 1; at most 2^64.
  Arc positions = kWholeCircle;
  // Circle: owners[i] has the positions after ends[i - 1] up to and with ends[i]. The last end is
  // the last position there is.
  std::span<const Position> ends;
  std::span<const ServerIndex> owners;
  // Table: a position belongs to table[position % table.size()].
  std::span<const ServerIndex> table;
};

// Which servers are out of the question; refers to a callable, which must outlive it.
class Excluded {
 public:
  template <std::predicate<ServerIndex> Function>
  Excluded(const Function& function) noexcept
      : function_(&function), call_([](const void* object, ServerIndex server) -> bool {
          return (*static_cast<const Function*>(object))(server);
        }) {}

  [[nodiscard]] bool operator()(ServerIndex server) const { return call_(function_, server); }

 private:
  const void* function_;
  bool (*call_)(const void* function, ServerIndex server);
};

class Ring {
 public:
  virtual ~Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // The position of a key, by the part of it that counts. Never fails, no allocation.
  [[nodiscard]] Position hash(std::string_view key) const noexcept {
    return hash_(*this, all_counts_ ? key : canonical_key(key, part_));
  }

  // The server that owns a position. REQUIRES: !empty().
  [[nodiscard]] virtual ServerIndex owner(Position position) const noexcept = 0;

  // Where a key goes when its first owners are out of the question: the first point on the walk
  // from `position` whose server is not `excluded`; nothing when every server of the ring is. With
  // nothing excluded it is the point of the owner. Used for failover, replicas and to explain: not
  // the steady-state path. The predicate is asked for the servers on the way only, and for all of
  // them where the way gets long.
  [[nodiscard]] std::optional<Point> successor(Position position,
                                               const Excluded& excluded) const noexcept {
    return walk(position, excluded);
  }
  [[nodiscard]] std::optional<Point> successor(
      Position position, std::span<const ServerIndex> excluded) const noexcept {
    return walk(position, [excluded](ServerIndex server) {
      return std::find(excluded.begin(), excluded.end(), server) != excluded.end();
    });
  }

  // All points by position, those of a table by slot. Two points of one position: the owner first.
  [[nodiscard]] std::span<const Point> points() const noexcept { return points_; }

  // Exact part of all positions that each server owns, by server index; sums to 1 (empty ring: all
  // 0).
  [[nodiscard]] std::span<const double> shares() const noexcept { return shares_; }

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }

  // Would the same servers in another order own other keys? True for lists that are indexed, and
  // where two servers share a position that goes to the one listed first.
  [[nodiscard]] bool order_matters() const noexcept { return order_matters_; }

  [[nodiscard]] bool empty() const noexcept { return shares_.empty() || on_ring_ == 0; }

 protected:
  // `ring` is the ring whose hash it is.
  using KeyHash = Position (*)(const Ring& ring, std::string_view key) noexcept;

  Ring(KeyHash of_key, KeyPart part)
      : hash_(of_key), part_(std::move(part)), all_counts_(part_.is_all()) {}

  [[nodiscard]] virtual std::optional<Point> walk(Position position,
                                                  const Excluded& excluded) const noexcept = 0;

  Points points_;
  std::vector<double> shares_;
  Layout layout_;            // its spans point into the derived ring
  std::size_t on_ring_ = 0;  // how many servers own something or could after others are excluded
  bool order_matters_ = false;

 private:
  KeyHash hash_;
  KeyPart part_;
  bool all_counts_;
};

}  // namespace clockwise::ring
