#include "ring/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace clockwise::ring {

TableRing::TableRing(Hashing hashing, std::vector<ServerIndex> slots, std::size_t servers,
                     bool by_order)
    : Ring(hashing.hash, hashing.part), slots_(std::move(slots)) {
  layout_.keying = fmt::format("{} {}", hashing.name, keying_of(hashing.part));
  layout_.positions = hashing.positions;
  layout_.table = slots_;
  order_matters_ = by_order;

  std::vector<Arc> owned(servers, 0);
  std::vector<bool> present(servers, false);
  points_.reserve(slots_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    points_.push_back({slot, slots_[slot]});
    present[slots_[slot]] = true;
    if (slot < hashing.positions)
      owned[slots_[slot]] += (hashing.positions - 1 - slot) / slots_.size() + 1;
  }
  on_ring_ = static_cast<std::size_t>(std::count(present.begin(), present.end(), true));
  shares_.resize(servers);
  std::transform(owned.begin(), owned.end(), shares_.begin(),
                 [&](Arc arc) { return slots_.empty() ? 0 : share_of(arc, layout_.positions); });
}

std::optional<Point> TableRing::walk(Position position, const Excluded& excluded) const noexcept {
  if (slots_.empty()) return std::nullopt;
  std::size_t slot = position % slots_.size();
  for (std::size_t seen = 0; seen < slots_.size(); ++seen) {
    if (!excluded(slots_[slot])) return points_[slot];
    if (++slot == slots_.size()) slot = 0;
  }
  return std::nullopt;
}

}  // namespace clockwise::ring
