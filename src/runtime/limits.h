// How many connections fit into the descriptors that the system grants.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace clockwise::runtime {

// Raises the soft limit of open files to the hard one; returns what holds then.
std::uint64_t raise_descriptor_limit();

// How many descriptors the process has open, or 0 where /proc is not to be had.
[[nodiscard]] std::uint64_t open_descriptors();

// Descriptors that clients may have, and servers beside them: the numbers at which the rest, which
// is for admin, files and logs, begins.
struct DescriptorShares {
  int clients, servers;
};
[[nodiscard]] DescriptorShares descriptor_shares(std::uint64_t descriptors,
                                                 std::uint32_t workers) noexcept;

// What `limits.max_connections: auto` means for each listener on each worker. A client may need a
// second descriptor towards its server, and some are kept for listening, admin and files;
// `inherited` were open before the start. Fails when that leaves hardly any; the message says how
// many descriptors are needed.
[[nodiscard]] Result<std::uint32_t> automatic_connections(std::uint64_t descriptors,
                                                          std::uint64_t inherited,
                                                          std::uint32_t workers,
                                                          std::size_t listeners);

}  // namespace clockwise::runtime
