// The configuration that `serve --listen ADDR --to ADDR[,ADDR…]` stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clockwise::config {

// YAML for load(): one listener named `web`, one pool named `pages` with the servers `server-1`,
// `server-2`, … The addresses are quoted as they are, so load() reports a bad one with its place.
[[nodiscard]] std::string quick_config(std::string_view listen, const std::vector<std::string>& to);

}  // namespace clockwise::config
