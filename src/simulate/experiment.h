// The experiment of the consistent-hashing literature: place many keys on a list of servers, change
// the list, place them again, and count.
//
// Pure, and on the product's own ring code: what it counts is what a proxy would do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "simulate/change.h"
#include "simulate/contestant.h"
#include "simulate/keys.h"

namespace clockwise::simulate {

struct Trial {
  Contestant contestant;
  Change change;
};

// What came of one trial.
struct Row {
  std::string scheme;
  std::optional<std::uint64_t> points;  // of one server; nothing where there is no ring
  std::size_t servers_before = 0, servers_after = 0;
  std::uint64_t keys = 0;
  std::uint64_t moved = 0;
  std::uint64_t needless = 0;  // of these: between two servers that both lists have unchanged
  double minimum_ratio = 0;
  std::vector<std::pair<std::string, std::uint64_t>> counts;  // after, in the order of the list
  // After, of each server with a weight: its keys over what the weight entitles it to, so that 1 is
  // fair whatever the weights.
  std::vector<double> loads;

  [[nodiscard]] double moved_ratio() const noexcept;
  [[nodiscard]] double needless_ratio() const noexcept;
  [[nodiscard]] double max_over_mean() const noexcept;
  // Nothing when a server has no key at all.
  [[nodiscard]] std::optional<double> max_over_min() const noexcept;
  // Standard deviation of the loads over their mean.
  [[nodiscard]] double deviation_ratio() const noexcept;
};

// The standard deviation over the mean to expect of `servers` with `points` random points each:
// sqrt((N - 1) / (N V + 1)), which is near 1/sqrt(V) (the spacings of N V random points on a circle
// follow a Dirichlet distribution).
[[nodiscard]] double expected_deviation(std::uint64_t points, std::size_t servers) noexcept;

// The trials of an experiment: each contestant once, or once for each number of points when it
// takes points and `sweep` is not empty.
[[nodiscard]] std::vector<Trial> sweep(const std::vector<Contestant>& contestants,
                                       const std::vector<std::uint32_t>& points,
                                       const Change& change);

// Runs one trial. `progress` is told now and then how many keys are done. Fails as places() does.
[[nodiscard]] Result<Row> run(const Trial& trial, const KeySeries& keys,
                              const std::function<void(std::uint64_t)>& progress);

}  // namespace clockwise::simulate
