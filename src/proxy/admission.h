// What every worker of the process looks at before it takes on more. The runtime writes it, workers
// read.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <string_view>

namespace clockwise::proxy {

struct Admission {
  // Memory has run short: new connections and new requests are turned away, what was admitted goes
  // on.
  std::atomic<bool> short_of_memory{false};

  // Descriptors are given out lowest first, so the number of a new one tells how many are in use.
  // At or above these none is left for clients, or for servers; the rest is for the admin listener
  // and files. Set before the workers start.
  int client_descriptors = std::numeric_limits<int>::max();
  int server_descriptors = std::numeric_limits<int>::max();

  // Takes a line for the log of the process; may be empty. Set before the workers start.
  std::function<void(std::string_view)> warn;
};

}  // namespace clockwise::proxy
