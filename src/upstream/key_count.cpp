#include "upstream/key_count.h"

namespace clockwise::upstream {
namespace {

// Empty: nobody owns it.
std::string_view owner(const Side& side, std::string_view key) {
  if (side.ring == nullptr || side.ring->empty()) return {};
  return side.pool->servers[side.ring->owner(side.ring->hash(key))].name;
}

}  // namespace

void KeyCounter::add(std::string_view key) {
  ++total_;
  const std::string_view from = owner(before_, key), to = owner(after_, key);
  if (from != to && !from.empty() && !to.empty()) ++moves_[{from, to}];
}

KeyCount KeyCounter::result() const {
  KeyCount count;
  count.total = total_;
  for (const auto& [pair, moved] : moves_) {
    count.moved += moved;
    count.moves.push_back({std::string(pair.first), std::string(pair.second), moved});
  }
  return count;
}

}  // namespace clockwise::upstream
