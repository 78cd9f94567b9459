#include "config/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace clockwise::config {
namespace {

constexpr double kMaxWeight = 10'000;

constexpr std::array<Choice<ServerState>, 3> kStates{{{"active", ServerState::active},
                                                      {"draining", ServerState::draining},
                                                      {"down", ServerState::down}}};

// Hands a value to `read` and remembers where it stands.
template <class Read>
auto at(Place& place, Read read) {
  return [&place, read](const Field& field) {
    place = field.place();
    read(field);
  };
}

void read_label(const Field& field, std::optional<std::string>& label) {
  std::string text;
  read_text(field, text, Empty::refused);
  if (!text.empty()) label = std::move(text);
}

ListedServer read_server(const Field& field) {
  ListedServer out;
  out.name = out.address = out.weight = field.place();
  Server& server = out.server;
  MapReader map(field);
  map.require("name", at(out.name, name(server.name)));
  map.require("address", at(out.address, address(server.address, PortRule::connecting)));
  map.read("weight", at(out.weight, number(server.weight, 0, kMaxWeight)));
  map.read("zone", text(server.zone, Empty::allowed));
  map.read("state", choice(server.state, kStates));
  map.read("label", [&](const Field& f) { read_label(f, server.label); });
  map.refuse("id");
  map.finish();
  return out;
}

void check_names(const std::vector<ListedServer>& servers, const std::vector<Field>& items) {
  std::unordered_map<std::string_view, Place> seen;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string& name = servers[i].server.name;
    if (name.empty()) continue;
    const auto [first, fresh] = seen.emplace(name, servers[i].name);
    if (!fresh)
      items[i].problem_at(servers[i].name,
                          fmt::format("duplicate server name {}, already on line {}", quoted(name),
                                      first->second.line),
                          ".name");
  }
}

// Two servers of one label would fight for the same points.
void check_labels(const std::vector<ListedServer>& servers, const std::vector<Field>& items) {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i].server;
    if (server.name.empty()) continue;
    const auto [first, fresh] = seen.emplace(server.ring_label(), i);
    if (fresh || servers[first->second].server.name == server.name) continue;
    items[i].problem_at(servers[i].name,
                        fmt::format("hashes the same label {} as the server on line {}",
                                    quoted(server.ring_label()), servers[first->second].name.line),
                        ".label");
  }
}

std::uint64_t total_points(const std::vector<ListedServer>& servers, std::uint32_t per_weight) {
  std::uint64_t total = 0;
  for (const ListedServer& listed : servers) total += points_of(listed.server, per_weight);
  return total;
}

}  // namespace

std::vector<ListedServer> read_servers(const Field& list) {
  std::vector<ListedServer> servers;
  const std::optional<std::vector<Field>> items = list.items();
  if (!items) return servers;
  if (items->empty()) list.problem("the list of servers is empty");
  servers.reserve(items->size());
  for (const Field& item : *items) servers.push_back(read_server(item));
  check_names(servers, *items);
  check_labels(servers, *items);
  const auto weightless = [](const ListedServer& listed) { return listed.server.weight == 0; };
  if (!servers.empty() && std::all_of(servers.begin(), servers.end(), weightless))
    list.problem("the weights are all 0: no server would own a key");
  return servers;
}

std::uint32_t largest_points(const std::vector<ListedServer>& servers) {
  std::uint32_t fits = 0;
  std::uint32_t above = static_cast<std::uint32_t>(kMaxPoints) + 1;
  while (above - fits > 1) {
    const std::uint32_t middle = fits + (above - fits) / 2;
    (total_points(servers, middle) <= kMaxPoints ? fits : above) = middle;
  }
  return fits;
}

std::uint64_t points_of(const Server& server, std::uint32_t per_weight) {
  if (!server.on_ring()) return 0;
  return static_cast<std::uint64_t>(std::floor(per_weight * server.weight + 0.5));
}

void check_points(const std::vector<ListedServer>& servers, const Ring& ring, const Field& list,
                  const std::optional<Field>& points) {
  const std::uint64_t total = total_points(servers, ring.scheme.points);
  const bool owners = std::any_of(servers.begin(), servers.end(), [](const ListedServer& listed) {
    return listed.server.on_ring();
  });
  if (owners && total == 0)
    list.problem(fmt::format("the weights are so small that no server has a point at points: {}",
                             ring.scheme.points));
  if (total <= kMaxPoints) return;
  const std::uint32_t fits = largest_points(servers);
  const std::string advice = fits > 0 ? fmt::format("points: {} would fit", fits)
                                      : "no points would fit: lower the weights";
  const Field& where = points ? *points : list;
  where.problem(fmt::format("{} points in the pool are above the limit of {}; {}", total,
                            kMaxPoints, advice));
}

}  // namespace clockwise::config
