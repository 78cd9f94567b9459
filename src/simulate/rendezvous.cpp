#include "simulate/rendezvous.h"

#include <cmath>

#include "ring/hashes.h"

namespace clockwise::simulate {

Rendezvous::Rendezvous(std::span<const Node> nodes) {
  for (const Node& node : nodes) servers_.push_back({ring::xxh64(node.name), node.weight});
}

ring::ServerIndex Rendezvous::owner(std::string_view key) const noexcept {
  ring::ServerIndex best = 0;
  double highest = -1;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    // 53 bits, so that the number is exact, and a half, so that it is neither 0 nor 1.
    const auto bits = static_cast<double>(ring::xxh64(key, servers_[i].seed) >> 11);
    const double u = (bits + 0.5) / 9007199254740992.0;
    const double score = servers_[i].weight > 0 ? -servers_[i].weight / std::log(u) : -1;
    if (score <= highest) continue;
    highest = score;
    best = static_cast<ring::ServerIndex>(i);
  }
  return best;
}

}  // namespace clockwise::simulate
