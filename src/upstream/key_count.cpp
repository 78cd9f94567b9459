#include "upstream/key_count.h"

#include <algorithm>
#include <tuple>

namespace clockwise::upstream {
namespace {

constexpr std::size_t kMatrixCells = std::size_t{1} << 22;  // 32 MiB

bool owns_something(const Side& side) { return side.ring != nullptr && !side.ring->empty(); }

}  // namespace

KeyCounter::KeyCounter(const Side& before, const Side& after)
    : before_(before),
      after_(after),
      owned_(owns_something(before) && owns_something(after)),
      hashed_alike_(owned_ && before.ring->layout().keying == after.ring->layout().keying &&
                    before.ring->layout().positions == after.ring->layout().positions),
      width_(owned_ ? after.pool->servers.size() : 0) {
  const std::size_t cells = owned_ ? before.pool->servers.size() * width_ : 0;
  if (cells <= kMatrixCells) matrix_.resize(cells);
}

void KeyCounter::add(std::string_view key_before, std::string_view key_after) {
  ++total_;
  if (!owned_) return;
  const ring::Position position = before_.ring->hash(key_before);
  // One and the same text, not only an equal one: it is a comparison of two words.
  const bool same = hashed_alike_ && key_before.data() == key_after.data() &&
                    key_before.size() == key_after.size();
  wait({position, same ? position : after_.ring->hash(key_after)});
}

void KeyCounter::add_position(ring::Position position) {
  ++total_;
  if (owned_) wait({position, position});
}

void KeyCounter::look_up() {
  std::array<std::size_t, std::tuple_size_v<decltype(waiting_)>> pairs;
  for (std::size_t i = 0; i < waiting_count_; ++i)
    pairs[i] = before_.ring->owner(waiting_[i].before) * width_;
  for (std::size_t i = 0; i < waiting_count_; ++i)
    pairs[i] += after_.ring->owner(waiting_[i].after);
  for (std::size_t i = 0; i < waiting_count_; ++i) count(pairs[i]);
  waiting_count_ = 0;
}

KeyCount KeyCounter::result() {
  look_up();
  KeyCount found;
  found.total = total_;
  const auto take = [&](std::size_t pair, std::uint64_t count) {
    const std::string& from = before_.pool->servers[pair / width_].name;
    const std::string& to = after_.pool->servers[pair % width_].name;
    if (count == 0 || from == to) return;
    found.moved += count;
    found.moves.push_back({from, to, count});
  };
  for (std::size_t pair = 0; pair < matrix_.size(); ++pair) take(pair, matrix_[pair]);
  for (const auto& [pair, count] : pairs_) take(pair, count);
  std::ranges::sort(found.moves, {},
                    [](const KeyMove& move) { return std::tie(move.from, move.to); });
  return found;
}

}  // namespace clockwise::upstream
