// Counts which of the user's own keys a change moves: the share of the circle says what to expect,
// this says what happens to the keys that are really asked for.
//
//   KeyCounter counter(before, after);
//   for (const auto& key : keys) counter.add(key);
//   report.keys = counter.result();
#pragma once

#include <array>
#include <string_view>
#include <unordered_map>

#include "base/large_vector.h"
#include "upstream/plan.h"

namespace clockwise::upstream {

// The pools and rings of both sides must outlive it. One thread.
class KeyCounter {
 public:
  KeyCounter(const Side& before, const Side& after);

  // A key that occurs many times counts as often. Without an owner on one side it does not move.
  void add(std::string_view key) { add(key, key); }
  // One request whose key is made in another way after the change.
  void add(std::string_view key_before, std::string_view key_after);
  // One request by the position that both rings give its key. REQUIRES: they hash keys alike.
  void add_position(ring::Position position);

  [[nodiscard]] KeyCount result();  // moves sorted by (from, to)

 private:
  // Of one request on both rings.
  struct Positions {
    ring::Position before, after;
  };

  void wait(Positions positions) {
    waiting_[waiting_count_++] = positions;
    if (waiting_count_ == waiting_.size()) look_up();
  }
  void look_up();
  void count(std::size_t pair) {
    if (matrix_.empty())
      ++pairs_[pair];
    else
      ++matrix_[pair];
  }

  Side before_, after_;
  bool owned_;         // on both sides
  bool hashed_alike_;  // a key has one position for both
  std::size_t width_;  // servers after
  std::uint64_t total_ = 0;
  // Looked up together: a large ring is not in the caches, and while one key waits for the memory
  // the next ones can start.
  std::array<Positions, 64> waiting_;
  std::size_t waiting_count_ = 0;
  // Pairs of servers, before * width_ + after: a matrix of all, or those met where that is large.
  LargeVector<std::uint64_t> matrix_;
  std::unordered_map<std::size_t, std::uint64_t> pairs_;
};

}  // namespace clockwise::upstream
