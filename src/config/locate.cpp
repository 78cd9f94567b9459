#include "config/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/yaml.h"

namespace clockwise::config {
namespace {

const Node* next(const Node& node, const std::string& key) {
  const auto found = std::ranges::find(node.entries, key, &Entry::key);
  return found == node.entries.end() ? nullptr : found->value;
}

const Node* next(const Node& node, std::size_t index) {
  return index < node.items.size() ? node.items[index] : nullptr;
}

std::optional<Place> place_of(const Node* node, const Steps& steps) {
  for (const auto& step : steps) {
    if (node == nullptr) return std::nullopt;
    node = std::visit([&](const auto& to) { return next(*node, to); }, step);
  }
  if (node == nullptr) return std::nullopt;
  return node->place;
}

}  // namespace

Problem problem_at(const std::string& file, const Steps& steps, std::string message,
                   const FileReader& read) {
  const auto text = read(file);
  if (text.index() == 0) {
    const auto decoded = Source::decode(file, std::get<0>(text));
    if (const auto* source = std::get_if<Source>(&decoded)) {
      Report ignored;
      const std::optional<Document> document = parse_yaml(*source, ignored);
      const auto place = document ? place_of(document->root, steps) : std::nullopt;
      if (place) return source->problem(*place, std::move(message));
    }
  }
  return {.position = {.file = file}, .message = std::move(message), .source = {}};
}

Problem problem_at_address(const std::string& main_file, const Pool& pool, std::size_t server,
                           std::string_view message, const FileReader& read) {
  if (pool.servers_file)
    return problem_at(*pool.servers_file, {"servers", server, "address"},
                      fmt::format("servers[{}].address: {}", server, message), read);
  return problem_at(main_file, {"pools", pool.name, "servers", server, "address"},
                    fmt::format("pools.{}.servers[{}].address: {}", pool.name, server, message),
                    read);
}

}  // namespace clockwise::config
