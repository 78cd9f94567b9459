// What a valid configuration still needs from the machine, for `check`: names that resolve and an
// access log that can be written. Whether an address is free is left out, since the proxy may be
// running. Nothing is created.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "config/load.h"
#include "runtime/assemble.h"
#include "runtime/resolver.h"

namespace clockwise::runtime {

using Lookup =
    std::function<HostAddresses(const std::set<std::string>&, std::chrono::milliseconds)>;

// One problem for each server whose name has to resolve and does not.
[[nodiscard]] std::vector<config::Problem> fatal_names(const std::string& file,
                                                       const config::Config& config,
                                                       const Places& places,
                                                       const config::FileReader& read);

// Everything that would stop the start of `config`, which was loaded from `file`.
[[nodiscard]] std::vector<config::Problem> preflight(const std::string& file,
                                                     const config::Config& config,
                                                     const config::FileReader& read,
                                                     const Lookup& lookup);

}  // namespace clockwise::runtime
