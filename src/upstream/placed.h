// A pool as far as it decides who owns a key and where that server is: the ring's settings and the
// list of servers. Written down with each change in the history, read for the way back.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/model.h"

namespace clockwise::upstream {

struct Placed {
  config::Ring ring;
  std::vector<config::Server> servers;
  config::Protocol protocol = config::Protocol::http;  // decides how the ring is written

  friend bool operator==(const Placed&, const Placed&) = default;
};

[[nodiscard]] Placed placed(const config::Pool& pool);

// {"ring": {…}, "servers": […]}, for memcached servers also "protocol" and "memcached": JSON that
// reads as the pool's YAML.
[[nodiscard]] std::string to_text(const Placed& placed);

// Reads it by the rules of the configuration; the error is its first problem.
[[nodiscard]] Result<Placed> parse_placed(const std::string& text);

}  // namespace clockwise::upstream
