// What the builders of circles share: texts that end in a number, and lists of points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ring/scheme.h"

namespace clockwise::ring {

using Members = std::span<const Member>;

// A text that ends in a number, rewritten in place for each number.
class NumberedText {
 public:
  explicit NumberedText(std::string prefix);

  // PREFIX + `number` in decimal; valid until the next call.
  [[nodiscard]] std::string_view with(std::uint64_t number) noexcept;

 private:
  static constexpr std::size_t kDigits = 20;

  std::string text_;
  std::size_t prefix_;
};

// May the server own anything? Live, and of a weight above 0.
[[nodiscard]] inline bool on_ring(const Member& member) noexcept {
  return member.live && member.weight > 0;
}

// floor(points × weight + 0.5) points for each server on the ring.
[[nodiscard]] std::vector<std::uint64_t> rounded_counts(std::uint32_t points, Members members);

// Each server on the ring weight times, in the order of the list.
[[nodiscard]] std::vector<ServerIndex> weighted_list(Members members);

// By position; equal positions stay in the order they came in. Fast for positions that are spread
// evenly over 2^bits.
[[nodiscard]] Points sorted_by_position(const Points& unsorted, int bits);

// Do two servers have a point at one position? REQUIRES: `sorted` is sorted by position.
[[nodiscard]] bool servers_share_a_position(std::span<const Point> sorted);

// For peers that leave the points of a server that is down where they are and walk past them: each
// of these points gets the owner of the next one, over the top, whose server is live. Without any
// live server no point is left. REQUIRES: `sorted` is sorted by position.
void lead_past_the_dead(Points& sorted, Members members);

}  // namespace clockwise::ring
