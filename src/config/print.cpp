#include "config/print.h"

#include <fmt/format.h>

namespace clockwise::config {

std::string yaml_quoted(std::string_view text) {
  std::string out = "'";
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\'') out += '\'';
    if (text.substr(at, 2) == "${") out += '$';
    out += text[at];
  }
  return out + "'";
}

std::string quick_config(std::string_view listen, const std::vector<std::string>& to) {
  std::string out = fmt::format(
      "listeners:\n"
      "  - name: web\n"
      "    address: {}\n"
      "    pool: pages\n"
      "\n"
      "pools:\n"
      "  pages:\n"
      "    servers:\n",
      yaml_quoted(listen));
  for (std::size_t i = 0; i < to.size(); ++i)
    out += fmt::format("      - {{name: server-{}, address: {}}}\n", i + 1, yaml_quoted(to[i]));
  return out;
}

}  // namespace clockwise::config
