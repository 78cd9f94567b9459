// Envoy: RING_HASH and MAGLEV. The hash of a request is XXH64 of its key in both.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "import/model.h"
#include "ring/hashes.h"

namespace clockwise::importer {
namespace {

using Points = std::vector<ModelPoint<std::uint64_t>>;

// The servers that take part, with weights that sum to 1.
struct Share {
  std::size_t server;
  double weight;
};

std::vector<Share> shares_of(const std::vector<Server>& servers) {
  double sum = 0;
  for (const Server& server : servers)
    if (!server.down) sum += server.weight;
  std::vector<Share> shares;
  for (std::size_t i = 0; i < servers.size(); ++i)
    if (!servers[i].down) shares.push_back({i, servers[i].weight / sum});
  return shares;
}

Points points_of(const std::vector<Server>& servers, const ring::Scheme& scheme) {
  const std::vector<Share> shares = shares_of(servers);
  if (shares.empty()) return {};
  double least = 1;
  for (const Share& share : shares) least = std::min(least, share.weight);
  const double scale =
      std::min(std::ceil(least * scheme.min_size) / least, static_cast<double>(scheme.max_size));
  Points points;
  double current = 0;
  double target = 0;
  for (const Share& share : shares) {
    target += scale * share.weight;
    for (int i = 0; current < target; ++i, current += 1) {
      const std::string text = fmt::format("{}_{}", servers[share.server].label, i);
      points.push_back(
          {scheme.hash == "murmur2" ? ring::murmur2_64(text) : ring::xxh64(text), share.server});
    }
  }
  return points;
}

// Each server in turn takes the next free slot of its own order.
std::vector<std::size_t> maglev_table(const std::vector<Server>& servers, std::uint64_t size) {
  std::vector<Share> shares = shares_of(servers);
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) {
    return std::tie(servers[a.server].label, a.server) <
           std::tie(servers[b.server].label, b.server);
  });
  double largest = 0;
  for (const Share& share : shares) largest = std::max(largest, share.weight);
  std::vector<std::size_t> table(size, servers.size());
  std::vector<double> targets(shares.size(), 0);
  std::vector<std::uint64_t> steps(shares.size(), 0);
  std::uint64_t filled = 0;
  for (double turn = 1; filled < size && !shares.empty(); turn += 1)
    for (std::size_t i = 0; i < shares.size() && filled < size; ++i) {
      if (turn * shares[i].weight < targets[i]) continue;
      targets[i] += largest;
      const std::string& label = servers[shares[i].server].label;
      const std::uint64_t offset = ring::xxh64(label, 0) % size;
      const std::uint64_t skip = ring::xxh64(label, 1) % (size - 1) + 1;
      while (table[(offset + skip * steps[i]) % size] != servers.size()) ++steps[i];
      table[(offset + skip * steps[i]++) % size] = shares[i].server;
      ++filled;
    }
  return table;
}

}  // namespace

Model envoy_model(const std::vector<Server>& servers, const ring::Scheme& scheme) {
  return [points = points_of(servers, scheme)](std::string_view key) {
    return points.empty() ? std::size_t{0} : walk_from(points, ring::xxh64(key)).server;
  };
}

Model maglev_model(const std::vector<Server>& servers, const ring::Scheme& scheme) {
  return [table = maglev_table(servers, scheme.table)](std::string_view key) {
    return table[ring::xxh64(key) % table.size()];
  };
}

}  // namespace clockwise::importer
