// Looking into a YAML or JSON tree that was not written for this program: lenient about what is
// there, exact about where it stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/node.h"
#include "import/readers.h"

namespace clockwise::importer {

// The value of a key of a map; null when `node` is null, no map, or has no such key.
[[nodiscard]] const config::Node* find(const config::Node* node, std::string_view key) noexcept;

// The same along several keys.
[[nodiscard]] const config::Node* find(const config::Node* node,
                                       std::initializer_list<std::string_view> path) noexcept;

// The text of a scalar; empty for anything else.
[[nodiscard]] std::string_view text_of(const config::Node* node) noexcept;

// Parses the document of a reading; what is wrong with it goes to its problems.
[[nodiscard]] std::optional<config::Document> parse_tree(const Reading& reading);

}  // namespace clockwise::importer
