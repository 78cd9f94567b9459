// What is valid in a list of servers, but hardly meant (see servers.h).
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "config/servers.h"

namespace clockwise::config {
namespace {

constexpr double kWideSpread = 0.10;    // of a server's share, expected: one standard deviation
constexpr double kCoarseWeight = 0.01;  // a weight may be this far off after rounding to points

using Servers = std::vector<ListedServer>;

std::string step(std::size_t index, std::string_view key) {
  return fmt::format("[{}].{}", index, key);
}

void warn_of_address_names(const Servers& servers, const Field& list) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string& name = servers[i].server.name;
    if (!looks_like_address(name)) continue;
    list.warn_at(servers[i].name,
                 fmt::format("{} is an address, not a name: a machine that takes over under a new "
                             "address would be a new server, and its keys would scatter",
                             quoted(name)),
                 step(i, "name"));
  }
}

void warn_of_shared_addresses(const Servers& servers, const Field& list) {
  std::unordered_map<std::string_view, Place> seen;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string& address = servers[i].server.address.text;
    const auto [first, fresh] = seen.emplace(address, servers[i].address);
    if (fresh || address.empty()) continue;
    list.warn_at(servers[i].address,
                 fmt::format("{} is also the address of the server on line {}", quoted(address),
                             first->second.line),
                 step(i, "address"));
  }
}

// The share of a server with n points strays by about 1/sqrt(n) of itself.
void warn_of_wide_spread(const Servers& servers, const Ring& ring, const Field& list,
                         const std::optional<Field>& points) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i].server;
    if (!server.on_ring()) continue;
    const std::uint64_t owned = points_of(server, ring.scheme.points);
    if (owned == 0) continue;  // its weight is too coarse, which has a warning of its own
    const double spread = 1 / std::sqrt(static_cast<double>(owned));
    if (spread <= kWideSpread) continue;
    const std::string message = fmt::format(
        "{} points for {} let its share of the keys stray by about {:.0f} %; more "
        "points make it even",
        owned, quoted(server.name), 100 * spread);
    if (points && ring.scheme.points * kWideSpread * kWideSpread < 1)
      points->warn_at(points->place(), message);
    else
      list.warn_at(servers[i].weight, message, step(i, "weight"));
    return;  // the first is reason enough to raise `points`
  }
}

void warn_of_coarse_weights(const Servers& servers, const Ring& ring, const Field& list) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i].server;
    if (!server.on_ring()) continue;
    const double wanted = server.weight * ring.scheme.points;
    const auto owned = static_cast<double>(points_of(server, ring.scheme.points));
    const double error = std::abs(owned - wanted) / wanted;
    if (error <= kCoarseWeight) continue;
    list.warn_at(servers[i].weight,
                 fmt::format("{} at {} points is {:.2f} points, rounded to {}: {:.0f} % off",
                             server.weight, ring.scheme.points, wanted, owned, 100 * error),
                 step(i, "weight"));
  }
}

void warn_of_dominance(const Servers& servers, const Field& list, double total) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i].server;
    if (!server.on_ring() || server.weight <= total / 2) continue;
    list.warn_at(servers[i].weight,
                 fmt::format("{} owns {:.0f} % of the keys: more than all others together",
                             quoted(server.name), 100 * server.weight / total),
                 step(i, "weight"));
  }
}

}  // namespace

void warn_of_servers(const Servers& servers, const Ring& ring, const Field& list,
                     const std::optional<Field>& points) {
  double weight = 0;
  std::size_t owners = 0;
  for (const ListedServer& listed : servers) {
    if (!listed.server.on_ring()) continue;
    weight += listed.server.weight;
    ++owners;
  }
  warn_of_address_names(servers, list);
  warn_of_shared_addresses(servers, list);
  if (owners == 0) list.warn_at(list.place(), "no server is active: no key has an owner");
  if (owners >= 2) warn_of_wide_spread(servers, ring, list, points);
  if (owners >= 2) warn_of_coarse_weights(servers, ring, list);
  if (owners >= 3) warn_of_dominance(servers, list, weight);
}

}  // namespace clockwise::config
