// The list of servers of a pool, from the main file or from an upstream file.
#pragma once

#include <vector>

#include "config/field.h"

namespace clockwise::config {

// A server and where its parts are written; the key of its map where one is left out.
struct ListedServer {
  Server server;
  Place name;
  Place address;
  Place weight;
};

// Reads the items of `list`. Reports what is wrong with each, doubled names, and a list that cannot
// own any key: an empty one, or one whose weights are all 0.
[[nodiscard]] std::vector<ListedServer> read_servers(const Field& list);

// Reports more points than a pool may have, at `points`, or at the list where that is not written,
// and weights that all round to no point.
void check_points(const std::vector<ListedServer>& servers, const Ring& ring, const Field& list,
                  const std::optional<Field>& points);

// Warns of what is valid, but hardly meant.
void warn_of_servers(const std::vector<ListedServer>& servers, const Ring& ring, const Field& list,
                     const std::optional<Field>& points);

// How many points a server has on the ring, as ring/ counts them.
[[nodiscard]] std::uint64_t points_of(const Server& server, std::uint32_t per_weight);

// The largest number of points per unit of weight that keeps the pool within kMaxPoints; 0: none.
[[nodiscard]] std::uint32_t largest_points(const std::vector<ListedServer>& servers);

}  // namespace clockwise::config
