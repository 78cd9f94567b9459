// The servers of an experiment, before and after a change of their list.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ring/ring.h"

namespace clockwise::simulate {

struct Node {
  std::string name;
  double weight = 1;

  friend bool operator==(const Node&, const Node&) = default;
};
using Nodes = std::vector<Node>;

struct Change {
  Nodes before, after;
};

// As the command line has them. A list is names, `A,B=2,C` (after `=` the weight), or a number:
// that many servers, called node-1, node-2, …; as `add`, by names that are new, also where one
// goes; as `remove`, that many from the end of the list.
struct ChangeText {
  std::string nodes = "4";
  std::string add;     // behind the end of the list
  std::string remove;  // names only, no weights
};

// Fails, and says where, on a name that is none or is there twice, a weight out of range, a server
// to remove that does not exist, and a list without a server or without weight.
[[nodiscard]] Result<Change> read_change(const ChangeText& text);

// Where each server of `to` stands in `from`, by index; nothing for one that is not there.
[[nodiscard]] std::vector<std::optional<ring::ServerIndex>> match(std::span<const Node> to,
                                                                  std::span<const Node> from);

[[nodiscard]] double total_weight(std::span<const Node> nodes) noexcept;

// The least share of the keys that any placement moves between two lists when both spread them by
// weight, 0 to 1.
[[nodiscard]] double minimum_ratio(const Change& change);

}  // namespace clockwise::simulate
