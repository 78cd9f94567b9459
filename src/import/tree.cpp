#include "import/tree.h"

#include "config/report.h"
#include "config/yaml.h"

namespace clockwise::importer {

const config::Node* find(const config::Node* node, std::string_view key) noexcept {
  if (node == nullptr || node->kind != config::Kind::map) return nullptr;
  for (const config::Entry& entry : node->entries)
    if (entry.key == key) return entry.value;
  return nullptr;
}

const config::Node* find(const config::Node* node,
                         std::initializer_list<std::string_view> path) noexcept {
  for (const std::string_view key : path) node = find(node, key);
  return node;
}

std::string_view text_of(const config::Node* node) noexcept {
  return node != nullptr && node->kind == config::Kind::scalar ? std::string_view(node->text)
                                                               : std::string_view();
}

std::optional<config::Document> parse_tree(const Reading& reading) {
  config::Report report;
  report.begin_file(reading.source.name());
  std::optional<config::Document> document = config::parse_yaml(reading.source, report);
  if (!report.failed()) return document;
  for (config::Problem& problem : report.take_failure().problems)
    reading.problems.push_back(std::move(problem));
  return std::nullopt;
}

}  // namespace clockwise::importer
