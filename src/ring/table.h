// The ring as a table: a position belongs to the slot of its remainder. Maglev, modulo and their
// kin.
#pragma once

#include <string>
#include <vector>

#include "ring/ring.h"

namespace clockwise::ring {

class TableRing : public Ring {
 public:
  struct Hashing {
    KeyHash hash;
    std::string name;  // of the function, for Layout::keying
    Arc positions;     // how many the function yields
    KeyPart part;      // of a key
  };

  // `slots` may be empty: nobody owns anything. `by_order`: the place of a server in the list
  // decides which slots it has.
  TableRing(Hashing hashing, std::vector<ServerIndex> slots, std::size_t servers, bool by_order);

  ServerIndex owner(Position position) const noexcept final {
    return slots_[position % slots_.size()];
  }

 private:
  // On to the next slots.
  std::optional<Point> walk(Position position, const Excluded& excluded) const noexcept final;

  std::vector<ServerIndex> slots_;
};

}  // namespace clockwise::ring
