// The listeners of a configuration.
#pragma once

#include <vector>

#include "config/field.h"

namespace clockwise::config {

// Reports doubled names and addresses, and pools and caches that are not among these. `admin` is an
// address that no listener may take.
[[nodiscard]] std::vector<Listener> read_listeners(const Field& field, std::span<const Pool> pools,
                                                   std::span<const std::string_view> caches,
                                                   const Address& admin);

}  // namespace clockwise::config
