#include "config/print.h"

#include <fmt/format.h>

namespace clockwise::config {
namespace {

// Single quotes keep every character but themselves; `$${` keeps a variable from being taken.
std::string yaml_text(std::string_view text) {
  std::string out = "'";
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\'') out += '\'';
    if (text.substr(at, 2) == "${") out += '$';
    out += text[at];
  }
  return out + "'";
}

}  // namespace

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
      yaml_text(listen));
  for (std::size_t i = 0; i < to.size(); ++i)
    out += fmt::format("      - {{name: server-{}, address: {}}}\n", i + 1, yaml_text(to[i]));
  return out;
}

}  // namespace clockwise::config
