// The listeners of a configuration.
#pragma once

#include <vector>

#include "config/field.h"

namespace clockwise::config {

// Reports doubled names and addresses, and a pool that is not in `pools`. `admin` is an address
// that no listener may take.
[[nodiscard]] std::vector<Listener> read_listeners(const Field& field,
                                                   std::span<const std::string_view> pools,
                                                   const Address& admin);

}  // namespace clockwise::config
