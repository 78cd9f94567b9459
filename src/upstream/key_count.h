// Counts which of the user's own keys a change moves: the share of the circle says what to expect,
// this says what happens to the keys that are really asked for.
//
//   KeyCounter counter(before, after);
//   for (const auto& key : keys) counter.add(key);
//   report.keys = counter.result();
#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "upstream/plan.h"

namespace clockwise::upstream {

// The pools and rings of both sides must outlive it. One thread.
class KeyCounter {
 public:
  KeyCounter(const Side& before, const Side& after) : before_(before), after_(after) {}

  // A key that occurs many times counts as often. Without an owner on one side it does not move.
  void add(std::string_view key);

  [[nodiscard]] KeyCount result() const;  // moves sorted by (from, to)

 private:
  Side before_, after_;
  std::uint64_t total_ = 0;
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> moves_;
};

}  // namespace clockwise::upstream
