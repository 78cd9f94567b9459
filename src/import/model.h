// The recipes of the peers a second time, as simple as they can be written: every point in the
// order it is made, every look-up a walk over all of them. Slow, and for that easy to compare with
// the peer's own description. `import --prove` holds the rings of ring/ against them; only the hash
// functions are shared with those.
//
// All take the servers of a pool in the order of the source. REQUIRES: not empty.
#pragma once

#include <vector>

#include "import/pool.h"

namespace clockwise::importer {

// One point of a ring that is small enough to be walked.
template <class Position>
struct ModelPoint {
  Position position;
  std::size_t server;
};

// The first point at or behind `hash`, else the first of all; of equal ones the one made first.
// REQUIRES: !points.empty().
template <class Position>
const ModelPoint<Position>& walk_from(const std::vector<ModelPoint<Position>>& points,
                                      Position hash) {
  const ModelPoint<Position>* lowest = &points.front();
  const ModelPoint<Position>* next = nullptr;
  for (const ModelPoint<Position>& point : points) {
    if (point.position < lowest->position) lowest = &point;
    if (point.position >= hash && (next == nullptr || point.position < next->position))
      next = &point;
  }
  return next != nullptr ? *next : *lowest;
}

[[nodiscard]] Model nginx_model(const std::vector<Server>& servers);
[[nodiscard]] Model nginx_hash_model(const std::vector<Server>& servers);

// `scheme` has the hash, the distribution and the hash tag.
[[nodiscard]] Model twemproxy_model(const std::vector<Server>& servers, const ring::Scheme& scheme);

// `servers`: all of the section, with the ids that the source gives (0: none). `kept`: which of
// them are in the pool, by index. `cut_query`: the key is a URI whose query does not count.
[[nodiscard]] Model haproxy_model(const std::vector<Server>& servers,
                                  const std::vector<std::size_t>& kept, const ring::Scheme& scheme,
                                  bool cut_query);

[[nodiscard]] Model envoy_model(const std::vector<Server>& servers, const ring::Scheme& scheme);
[[nodiscard]] Model maglev_model(const std::vector<Server>& servers, const ring::Scheme& scheme);

}  // namespace clockwise::importer
