// Hash tags: keys that share what stands between two characters share their server.
#pragma once

#include <string_view>

namespace clockwise::ring {

// What of a key is hashed: what stands between the first character of the tag and the next
// occurrence of the second, when that is not empty; else, or without a tag, the whole key.
// REQUIRES: the tag is empty or two characters.
[[nodiscard]] constexpr std::string_view canonical_key(std::string_view key,
                                                       std::string_view tag) noexcept {
  if (tag.empty()) return key;
  const std::size_t open = key.find(tag[0]);
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find(tag[1], open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace clockwise::ring
