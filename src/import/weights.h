// Whole weights beyond the largest that a server here may have.
#pragma once

#include <cstdint>
#include <vector>

#include "config/model.h"
#include "import/pool.h"

namespace clockwise::importer {

inline constexpr auto kMaxWeight = static_cast<std::uint64_t>(config::kMaxWeight);

struct Weights {
  std::uint64_t divisor = 0;  // the greatest that all share; 0 when all are 0
  std::uint64_t largest = 0;
  std::uint64_t total = 0;

  [[nodiscard]] bool fit() const noexcept { return largest <= kMaxWeight; }
  // REQUIRES: not fit().
  [[nodiscard]] bool fit_divided() const noexcept { return largest / divisor <= kMaxWeight; }
};
[[nodiscard]] Weights weigh(const std::vector<Server>& servers);

// Divides all by what they share, which changes no weight relative to the others, and cuts off
// what is still too large.
void scale_down(std::vector<Server>& servers, const Weights& weights);

}  // namespace clockwise::importer
