// The pools of a configuration.
#pragma once

#include <vector>

#include "config/field.h"
#include "config/upstream_files.h"

namespace clockwise::config {

// Sorted by name. Reads the upstream files that the pools name; reports a cache that is not in
// `caches`.
[[nodiscard]] std::vector<Pool> read_pools(const Field& field, UpstreamFiles& files,
                                           std::span<const std::string_view> caches);

}  // namespace clockwise::config
