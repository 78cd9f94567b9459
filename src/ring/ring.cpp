#include "ring/ring.h"

namespace clockwise::ring {

std::string_view Ring::tagged(std::string_view key) const noexcept {
  const std::size_t open = key.find(hash_tag_[0]);
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find(hash_tag_[1], open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace clockwise::ring
