// The time of day, for what outlives a process.
#pragma once

#include <chrono>
#include <cstdint>

namespace clockwise::proxy {

// Milliseconds since 1970.
[[nodiscard]] inline std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace clockwise::proxy
