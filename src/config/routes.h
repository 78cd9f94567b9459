// The routes of a listener.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/field.h"

namespace clockwise::config {

inline constexpr std::string_view kForHttp = "is for listeners that speak HTTP";
inline constexpr std::string_view kForMemcached = "is for listeners that speak memcached";

// What the servers have to speak that a listener leads to; nothing: all that is spoken.
[[nodiscard]] inline std::optional<Protocol> spoken_behind(Protocol listener) noexcept {
  return listener == Protocol::http ? std::nullopt : std::optional(listener);
}

// Of a listener that speaks `protocol`. Reports pools and caches that are not among these; warns of
// a route that no request reaches.
[[nodiscard]] std::vector<Route> read_routes(const Field& field, Protocol protocol,
                                             std::span<const Pool> pools,
                                             std::span<const std::string_view> caches);

}  // namespace clockwise::config
