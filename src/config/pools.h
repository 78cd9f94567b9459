// The pools of a configuration.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/field.h"
#include "config/upstream_files.h"

namespace clockwise::config {

// Sorted by name. Reads the upstream files that the pools name; reports a cache that is not in
// `caches`.
[[nodiscard]] std::vector<Pool> read_pools(const Field& field, UpstreamFiles& files,
                                           std::span<const std::string_view> caches);

// The name of one of `pools` whose servers speak `protocol`; nothing: any. Of another the problem
// says which would do.
void read_pool_name(const Field& field, std::span<const Pool> pools,
                    std::optional<Protocol> protocol, std::string& out);

}  // namespace clockwise::config
