// What the kernel says about this process.
#pragma once

#include <cstdint>

namespace clockwise::metrics {

struct ProcessFacts {
  double cpu_seconds = 0;  // user and system
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_fds = 0, max_fds = 0;
};

// Reads /proc/self; a figure that cannot be read stays 0.
[[nodiscard]] ProcessFacts read_process_facts();

}  // namespace clockwise::metrics
