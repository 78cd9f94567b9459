// Rendezvous hashing, or highest random weight: every server gets a score for the key, the highest
// one owns it. D. Thaler, C. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
// IEEE/ACM Transactions on Networking 6(1), 1998. Weights by the logarithmic method of J. Resch,
// "New Hashing Algorithms for Data Storage", SNIA 2015: score = -weight / ln(u), where u is the
// hash as a number between 0 and 1.
//
// Perfectly even and perfectly monotone; the price is a hash for each server at each look-up.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ring/ring.h"
#include "simulate/change.h"

namespace clockwise::simulate {

// Immutable; any thread.
class Rendezvous {
 public:
  // REQUIRES: the weights do not sum to 0.
  explicit Rendezvous(std::span<const Node> nodes);

  // Of equal scores the earlier server of the list.
  [[nodiscard]] ring::ServerIndex owner(std::string_view key) const noexcept;

 private:
  struct Server {
    std::uint64_t seed;  // the hash of its name
    double weight;
  };
  std::vector<Server> servers_;
};

}  // namespace clockwise::simulate
