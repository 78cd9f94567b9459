// Consistent hashing with bounded loads: V. Mirrokni, M. Thorup, M. Zadimoghaddam, "Consistent
// Hashing with Bounded Loads", SODA 2018 (https://arxiv.org/abs/1608.01350).
//
// No server takes more than `balance` times its fair part of the keys; a key whose server is full
// goes to the next one on the walk along the ring that is not. So the owner depends on the keys
// that came before, and a change moves some keys between servers that stay.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ring/ring.h"
#include "simulate/change.h"

namespace clockwise::simulate {

// One thread at a time: it counts.
class BoundedLoads {
 public:
  // `keys` is how many will be placed. REQUIRES: balance >= 1; the weights do not sum to 0.
  BoundedLoads(std::shared_ptr<const ring::Ring> ring, std::span<const Node> nodes, double balance,
               std::uint64_t keys);

  // The most keys that server `i` takes: ceil(balance × keys × its part of the weights).
  [[nodiscard]] std::uint64_t capacity(std::size_t i) const noexcept { return capacities_[i]; }

  // Places one more key. REQUIRES: it is called for at most `keys` of them.
  [[nodiscard]] ring::ServerIndex place(std::string_view key);

 private:
  std::shared_ptr<const ring::Ring> ring_;
  std::vector<std::uint64_t> capacities_, loads_;
  std::vector<ring::ServerIndex> full_;
};

}  // namespace clockwise::simulate
