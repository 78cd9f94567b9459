// What is valid in a list of servers, but hardly meant (see servers.h).
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "config/servers.h"

namespace clockwise::config {
namespace {

constexpr double kWideSpread = 0.10;    // of a server's share, expected: one standard deviation
constexpr double kCoarseWeight = 0.01;  // a weight may be this far off after rounding to points

using Counts = std::vector<std::uint64_t>;

std::string step(std::size_t index, std::string_view key) {
  return fmt::format("[{}].{}", index, key);
}

void warn_of_address_names(const ServerList& list, const Field& where) {
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const std::string& name = list.servers[i].name;
    if (!looks_like_address(name)) continue;
    where.warn_at(list.places[i].name,
                  fmt::format("{} is an address, not a name: a machine that takes over under a new "
                              "address would be a new server, and its keys would scatter",
                              quoted(name)),
                  step(i, "name"));
  }
}

void warn_of_shared_addresses(const ServerList& list, const Field& where) {
  std::unordered_map<std::string_view, Place> seen;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const std::string& address = list.servers[i].address.text;
    const auto [first, fresh] = seen.emplace(address, list.places[i].address);
    if (fresh || address.empty()) continue;
    where.warn_at(list.places[i].address,
                  fmt::format("{} is also the address of the server on line {}", quoted(address),
                              first->second.line),
                  step(i, "address"));
  }
}

// The share of a server with n points strays by about 1/sqrt(n) of itself.
void warn_of_wide_spread(const ServerList& list, const Counts& counts, const WrittenRing& ring,
                         const Field& where) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;  // its weight is too coarse, which has a warning of its own
    const double spread = 1 / std::sqrt(static_cast<double>(counts[i]));
    if (spread <= kWideSpread) continue;
    const std::string message = fmt::format(
        "{} points for {} let its share of the keys stray by about {:.0f} %; more "
        "points make it even",
        counts[i], quoted(list.servers[i].name), 100 * spread);
    if (ring.points && ring.ring.scheme.points * kWideSpread * kWideSpread < 1)
      ring.points->warn_at(ring.points->place(), message);
    else
      where.warn_at(list.places[i].weight, message, step(i, "weight"));
    return;  // the first is reason enough to raise `points`
  }
}

void warn_of_coarse_weights(const ServerList& list, const Counts& counts, const WrittenRing& ring,
                            const Field& where) {
  if (ring.facts->default_points == 0) return;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const Server& server = list.servers[i];
    if (!server.on_ring()) continue;
    const double wanted = server.weight * ring.ring.scheme.points;
    const double error = std::abs(static_cast<double>(counts[i]) - wanted) / wanted;
    if (error <= kCoarseWeight) continue;
    where.warn_at(
        list.places[i].weight,
        fmt::format("{} at {} points is {:.2f} points, rounded to {}: {:.0f} % off", server.weight,
                    ring.ring.scheme.points, wanted, counts[i], 100 * error),
        step(i, "weight"));
  }
}

void warn_of_dominance(const ServerList& list, const Field& where, double total) {
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const Server& server = list.servers[i];
    if (!server.on_ring() || server.weight <= total / 2) continue;
    where.warn_at(list.places[i].weight,
                  fmt::format("{} owns {:.0f} % of the keys: more than all others together",
                              quoted(server.name), 100 * server.weight / total),
                  step(i, "weight"));
  }
}

}  // namespace

void warn_of_servers(const ServerList& list, const WrittenRing& ring, const Field& where) {
  double weight = 0;
  std::size_t owners = 0;
  for (const Server& server : list.servers) {
    if (!server.on_ring()) continue;
    weight += server.weight;
    ++owners;
  }
  const Counts counts = ring::point_counts(ring.ring.scheme, members_of(list.servers));
  warn_of_address_names(list, where);
  warn_of_shared_addresses(list, where);
  if (owners == 0) where.warn_at(where.place(), "no server is active: no key has an owner");
  if (owners >= 2) warn_of_wide_spread(list, counts, ring, where);
  if (owners >= 2) warn_of_coarse_weights(list, counts, ring, where);
  if (owners >= 3) warn_of_dominance(list, where, weight);
}

}  // namespace clockwise::config
