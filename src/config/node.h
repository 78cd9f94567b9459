// One YAML document as a plain tree: what was written and where, with nothing decided yet.
//
// Scalars keep their text (no type is guessed), maps keep doubled keys and the order of the file.
// An alias is the node it names, so a node may hang in several places; there is never a cycle.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "config/source.h"

namespace clockwise::config {

enum class Kind { null, scalar, sequence, map };

struct Node;

struct Entry {
  std::string key;
  Place place;  // of the key
  const Node* value = nullptr;
};

struct Node {
  Kind kind = Kind::null;
  bool quoted = false;             // of a scalar: "…", '…' or a block: text, whatever it looks like
  bool written = true;             // false: a null that stands for a value left out
  Place place;                     // first character of the value, anchors and tags skipped
  std::string text;                // of a scalar
  std::vector<Entry> entries;      // of a map
  std::vector<const Node*> items;  // of a sequence
};

struct Document {
  std::deque<Node> nodes;  // addresses stay
  const Node* root = nullptr;
};

}  // namespace clockwise::config
