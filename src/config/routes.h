// The routes of a listener.
#pragma once

#include <vector>

#include "config/field.h"

namespace clockwise::config {

// Reports pools and caches that are not among these; warns of a route that no request reaches.
[[nodiscard]] std::vector<Route> read_routes(const Field& field, Protocol protocol,
                                             std::span<const std::string_view> pools,
                                             std::span<const std::string_view> caches);

}  // namespace clockwise::config
