// The list of servers of a pool, from the main file or from an upstream file.
#pragma once

#include <vector>

#include "config/ring.h"

namespace clockwise::config {

// Goes on with the path of a list: `[2].weight`.
[[nodiscard]] std::string step(std::size_t index, std::string_view key);

// Where the parts of a server are written; the key of its map where one is left out.
struct ServerPlaces {
  Place name;
  Place address;
  Place weight;
  Place label;  // of what the ring hashes: the label, else the name
  Place id;
};

struct ServerList {
  std::vector<Server> servers;
  std::vector<ServerPlaces> places;  // one for each server
};

// Reads the items of `list` for a pool of `ring`. Reports what is wrong with each, with what the
// scheme makes of them (ids, weights, labels, the number of points), doubled names, and a list that
// cannot own any key: an empty one, or, without a fallback, one whose weights are all 0. Warnings
// (warnings.h) wait in the report until the whole configuration is known to be valid.
[[nodiscard]] std::vector<Server> read_servers(const Field& list, const WrittenRing& ring);

}  // namespace clockwise::config
