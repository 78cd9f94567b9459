// What a purge takes: all, or what a prefix, a host or a tag names. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/object.h"

namespace clockwise::cache {

enum class PurgeScope : std::uint8_t { url, prefix, host, tag, all };

struct PurgeRule {
  PurgeScope scope = PurgeScope::all;
  std::string text;   // of the key, for url and prefix; a host with or without its port; a tag
  bool soft = false;  // made stale, but kept for validation and for when the origin fails
  // Only what was fetched before it.
  std::uint32_t generation = 0;

  [[nodiscard]] bool names_key(std::string_view key) const noexcept;
  [[nodiscard]] bool names(std::string_view key, std::string_view tags) const noexcept;
  [[nodiscard]] bool names(const Object& object) const noexcept {
    return names(object.key(), object.tags());
  }
};

}  // namespace clockwise::cache
