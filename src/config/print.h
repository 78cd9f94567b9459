// Configurations that commands write: their scalars, and the one that
// `serve --listen ADDR --to ADDR[,ADDR…]` stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clockwise::config {

// `text` in single quotes, which keep every character but themselves; `$${` keeps a variable from
// being taken. REQUIRES: one line of printable text.
[[nodiscard]] std::string yaml_quoted(std::string_view text);

// YAML for load(): one listener named `web`, one pool named `pages` with the servers `server-1`,
// `server-2`, … The addresses are quoted as they are, so load() reports a bad one with its place.
[[nodiscard]] std::string quick_config(std::string_view listen, const std::vector<std::string>& to);

}  // namespace clockwise::config
