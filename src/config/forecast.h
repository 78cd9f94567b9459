// What a small change of a list of servers would move, by the real rings: figures for warnings.
//
// Pure; builds a ring for each change, so the caller bounds their size.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ring/scheme.h"

namespace clockwise::config {

struct Forecast {
  std::string change;   // `adding a server of weight 2`, `removing "b"`
  double moved = 0;     // share of the keys
  double needless = 0;  // of it between servers that the change does not touch
};

class Forecaster {
 public:
  // `now` is the ring of `scheme` and `members`. All must outlive it.
  Forecaster(const ring::Scheme& scheme, std::span<const ring::Member> members,
             const ring::Ring& now)
      : scheme_(scheme), members_(members), now_(now) {}

  // The change that moves most needlessly: one more server of the median weight, or one less from
  // the middle of the list; where neither moves anything needlessly, twice the weight for that one.
  // Nothing when no change moves anything needlessly. Of long lists the first change that does.
  [[nodiscard]] std::optional<Forecast> worst() const;

  // One server less, from the middle of those on the ring. Nothing when it would be the last one.
  [[nodiscard]] std::optional<Forecast> without_middle() const;

 private:
  using Members = std::vector<ring::Member>;

  [[nodiscard]] std::vector<std::size_t> on_ring() const;
  [[nodiscard]] std::optional<Forecast> with_one_more() const;
  [[nodiscard]] std::optional<Forecast> with_double_weight() const;
  [[nodiscard]] std::optional<Forecast> forecast(std::string change, const Members& after,
                                                 const std::string& touched) const;

  const ring::Scheme& scheme_;
  std::span<const ring::Member> members_;
  const ring::Ring& now_;
};

}  // namespace clockwise::config
