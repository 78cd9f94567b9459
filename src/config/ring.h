// The ring of a pool: how keys are placed on its servers.
#pragma once

#include <optional>

#include "config/field.h"

namespace clockwise::config {

// Returns where `points` is written, for what is wrong with it as a number of the whole pool.
std::optional<Field> read_ring(const Field& field, Ring& ring);

}  // namespace clockwise::config
