// HAProxy: `hash-type consistent`, the nearest of 16 points for each unit of weight.
#include <algorithm>
#include <set>

#include "import/model.h"
#include "ring/hashes.h"

namespace clockwise::importer {
namespace {

using Points = std::vector<ModelPoint<std::uint32_t>>;

constexpr std::uint32_t kPointsPerWeight = 16;
constexpr std::uint32_t kIdStep = 4096;

// A counter that advances by one for each server and passes over the ids in use.
std::vector<std::uint32_t> ids_of(const std::vector<Server>& servers) {
  std::set<std::uint32_t> used;
  for (const Server& server : servers) used.insert(server.id);
  std::vector<std::uint32_t> ids;
  std::uint32_t next = 1;
  for (const Server& server : servers) {
    while (server.id == 0 && used.contains(next)) ++next;
    ids.push_back(server.id != 0 ? server.id : next);
    ++next;
  }
  return ids;
}

Points points_of(const std::vector<Server>& servers, const std::vector<std::size_t>& kept) {
  const std::vector<std::uint32_t> ids = ids_of(servers);
  Points points;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Server& server = servers[kept[i]];
    if (server.down) continue;
    for (std::uint32_t k = 0; k < kPointsPerWeight * static_cast<std::uint32_t>(server.weight); ++k)
      points.push_back({ring::avalanche(ids[kept[i]] * kIdStep + k), i});
  }
  return points;
}

std::uint32_t hash_of(std::string_view key, const ring::Scheme& scheme) {
  const std::uint32_t hash = scheme.hash == "djb2"    ? ring::djb2(key)
                             : scheme.hash == "wt6"   ? ring::wt6(key)
                             : scheme.hash == "crc32" ? ring::crc32(key)
                                                      : ring::sdbm(key);
  return scheme.avalanche.value_or(false) ? ring::avalanche(hash) : hash;
}

// The point behind `hash`, unless the one before it is as near.
std::size_t nearest(const Points& points, std::uint32_t hash) {
  const ModelPoint<std::uint32_t>& next = walk_from(points, hash);
  const ModelPoint<std::uint32_t>* previous = nullptr;
  const ModelPoint<std::uint32_t>* highest = &points.front();
  for (const ModelPoint<std::uint32_t>& point : points) {
    if (point.position > highest->position) highest = &point;
    const bool before = point.position < hash;
    if (before && (previous == nullptr || point.position > previous->position)) previous = &point;
  }
  if (previous == nullptr) previous = highest;
  return hash - previous->position <= next.position - hash ? previous->server : next.server;
}

}  // namespace

Model haproxy_model(const std::vector<Server>& servers, const std::vector<std::size_t>& kept,
                    const ring::Scheme& scheme, bool cut_query) {
  return [points = points_of(servers, kept), scheme, cut_query](std::string_view key) {
    if (points.empty()) return std::size_t{0};
    return nearest(points, hash_of(cut_query ? key.substr(0, key.find('?')) : key, scheme));
  };
}

}  // namespace clockwise::importer
