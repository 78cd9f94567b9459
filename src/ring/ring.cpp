#include "ring/ring.h"

#include "ring/hash_tag.h"

namespace clockwise::ring {

std::string_view Ring::tagged(std::string_view key) const noexcept {
  return canonical_key(key, hash_tag_);
}

}  // namespace clockwise::ring
