// What of a key is hashed: the rest behind a namespace, and of that what stands in a hash tag, so
// that keys that share a tag share their server.
#pragma once

#include <string>
#include <string_view>

namespace clockwise::ring {

struct KeyPart {
  std::string key_namespace = {};  // a key that begins with it is hashed without it
  std::string hash_tag = {};       // empty, or two characters

  [[nodiscard]] bool is_all() const noexcept { return key_namespace.empty() && hash_tag.empty(); }
  friend bool operator==(const KeyPart&, const KeyPart&) = default;
};

// The part, which is never empty unless the key is: of a key that is the namespace and no more, all
// of it; then what stands between the first character of the tag and the next occurrence of the
// second, when that is not empty; else, or without a tag, all of it.
[[nodiscard]] constexpr std::string_view canonical_key(std::string_view key,
                                                       const KeyPart& part) noexcept {
  if (key.size() > part.key_namespace.size() && key.starts_with(part.key_namespace))
    key.remove_prefix(part.key_namespace.size());
  if (part.hash_tag.empty()) return key;
  const std::size_t open = key.find(part.hash_tag[0]);
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find(part.hash_tag[1], open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

// Equal for equal parts alone, for Layout::keying.
[[nodiscard]] inline std::string keying_of(const KeyPart& part) {
  return part.key_namespace.empty() ? part.hash_tag : part.hash_tag + " " + part.key_namespace;
}

}  // namespace clockwise::ring
