#include "simulate/slots.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "ring/hashes.h"

namespace clockwise::simulate {
namespace {

// Numbers of slots, by server.
using Counts = std::vector<std::int64_t>;

Counts count_slots(const std::vector<std::optional<ring::ServerIndex>>& owners, std::size_t nodes) {
  Counts counts(nodes, 0);
  for (const auto& owner : owners)
    if (owner) ++counts[*owner];
  return counts;
}

// How many slots each server shall have: its part by weight, rounded down, and one more for as many
// servers as needed, first for those that have more already, so that fewer slots move.
Counts targets(std::span<const Node> nodes, const Counts& have) {
  const double weight = total_weight(nodes);
  Counts target;
  for (const Node& node : nodes)
    target.push_back(static_cast<std::int64_t>(std::floor(kSlots * node.weight / weight)));
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::ranges::greater(), [&](std::size_t i) {
    return std::pair(have[i] - target[i], -static_cast<std::int64_t>(i));
  });
  std::int64_t left = kSlots - std::reduce(target.begin(), target.end());
  for (const std::size_t i : order)
    if (left > 0 && nodes[i].weight > 0) ++target[i], --left;
  return target;
}

}  // namespace

// The register of twemproxy's form only grows to the left: what CRC-16 keeps is its lower half.
std::uint16_t crc16(std::string_view text) noexcept {
  return static_cast<std::uint16_t>(ring::crc16_uncut(text) & 0xffff);
}

std::uint32_t slot_of(std::string_view key) noexcept {
  if (const std::size_t open = key.find('{'); open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1)
      key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlots;
}

SlotTable even_slots(std::span<const Node> nodes) {
  const double whole = total_weight(nodes);
  SlotTable table;
  double weight = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    weight += nodes[i].weight;
    const double end = std::round(kSlots * weight / whole);
    table.resize(static_cast<std::size_t>(end), static_cast<ring::ServerIndex>(i));
  }
  return table;
}

SlotTable reshard(const SlotTable& table, const Change& change) {
  const auto later = match(change.before, change.after);
  std::vector<std::optional<ring::ServerIndex>> owners;
  for (const ring::ServerIndex owner : table) owners.push_back(later[owner]);

  Counts have = count_slots(owners, change.after.size());
  const Counts target = targets(change.after, have);
  // From the top down, so that what a server keeps stays one range.
  for (auto owner = owners.rbegin(); owner != owners.rend(); ++owner)
    if (*owner && have[**owner] > target[**owner]) {
      --have[**owner];
      owner->reset();
    }
  SlotTable result;
  std::size_t receiver = 0;
  for (const auto& owner : owners) {
    while (!owner && have[receiver] >= target[receiver]) ++receiver;
    if (!owner) ++have[receiver];
    result.push_back(owner.value_or(static_cast<ring::ServerIndex>(receiver)));
  }
  return result;
}

}  // namespace clockwise::simulate
