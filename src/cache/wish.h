// What a request asks of a cache: found in one pass over its lines, and read only where it is
// there. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cache/policy.h"
#include "http/head.h"

namespace clockwise::cache {

struct Wish {
  bool control : 1 = false;  // Cache-Control
  bool authorization : 1 = false;
  bool if_none_match : 1 = false;
  bool if_modified_since : 1 = false;
  bool range : 1 = false;
  bool if_range : 1 = false;
  // If-Match and If-Unmodified-Since ask about the origin's state: it decides them.
  bool for_origin : 1 = false;
};

[[nodiscard]] Wish wish_of(std::string_view octets,
                           std::span<const http::FieldLine> fields) noexcept;

}  // namespace clockwise::cache
