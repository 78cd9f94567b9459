#include "simulate/bounded.h"

#include <algorithm>
#include <cmath>

namespace clockwise::simulate {

BoundedLoads::BoundedLoads(std::shared_ptr<const ring::Ring> ring, std::span<const Node> nodes,
                           double balance, std::uint64_t keys)
    : ring_(std::move(ring)), loads_(nodes.size(), 0) {
  const double whole = total_weight(nodes);
  for (const Node& node : nodes) {
    const double limit = balance * static_cast<double>(keys) * node.weight / whole;
    // What is a whole number but for the rounding of doubles stays that number.
    capacities_.push_back(static_cast<std::uint64_t>(std::max(0.0, std::ceil(limit - 1e-6))));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (capacities_[i] == 0) full_.push_back(static_cast<ring::ServerIndex>(i));
}

ring::ServerIndex BoundedLoads::place(std::string_view key) {
  const ring::Position position = ring_->hash(key);
  const auto point = ring_->successor(position, full_);
  const ring::ServerIndex owner = point ? point->server : ring_->owner(position);
  if (++loads_[owner] == capacities_[owner]) full_.push_back(owner);
  return owner;
}

}  // namespace clockwise::simulate
