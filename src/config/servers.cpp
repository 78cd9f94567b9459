#include "config/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "config/warnings.h"

namespace clockwise::config {
namespace {

// A haproxy point is hash(id × 4096 + i) on 32 bits: ids that are equal modulo this share points.
constexpr std::uint32_t kIdCircle = 1U << 20;

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

void read_weight(const Field& field, double& weight, const ring::SchemeFacts* facts) {
  double found = weight;
  number(found, 0, facts != nullptr ? facts->max_weight : kMaxWeight)(field);
  if (facts != nullptr && facts->whole_weights && found != std::floor(found))
    field.error(fmt::format("is not a whole number, as scheme {} needs it", facts->name));
  else
    weight = found;
}

void read_id(MapReader& map, Server& server, Place& place, const ring::SchemeFacts* facts) {
  if (facts == nullptr || facts->takes_id)
    map.read("id", at(place, integer(server.id, 1, std::numeric_limits<std::uint32_t>::max())));
  else
    map.refuse("id", belongs_to([](const ring::SchemeFacts& one) { return one.takes_id; }, *facts));
}

void read_server(const Field& field, const ring::SchemeFacts* facts, ServerList& list) {
  Server& server = list.servers.emplace_back();
  ServerPlaces& places = list.places.emplace_back();
  places.name = places.address = places.weight = places.id = field.place();
  MapReader map(field);
  map.require("name", at(places.name, name(server.name)));
  map.require("address", at(places.address, address(server.address, PortRule::connecting)));
  map.read("weight",
           at(places.weight, [&](const Field& f) { read_weight(f, server.weight, facts); }));
  map.read("zone", text(server.zone, Empty::allowed));
  map.read("state", choice(server.state, kStates));
  places.label = places.name;
  map.read("label", at(places.label, [&](const Field& f) { read_label(f, server.label); }));
  read_id(map, server, places.id, facts);
  map.finish();
}

void check_names(const ServerList& list, const Field& where) {
  std::unordered_map<std::string_view, Place> seen;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const std::string& name = list.servers[i].name;
    if (name.empty()) continue;
    const auto [first, fresh] = seen.emplace(name, list.places[i].name);
    if (!fresh)
      where.problem_at(list.places[i].name,
                       fmt::format("duplicate server name {}, already on line {}", quoted(name),
                                   first->second.line),
                       step(i, "name"));
  }
}

// Two servers of one label would fight for the same points.
void check_labels(const ServerList& list, const Field& where) {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const Server& server = list.servers[i];
    if (server.name.empty()) continue;
    const auto [first, fresh] = seen.emplace(server.ring_label(), i);
    if (fresh || list.servers[first->second].name == server.name) continue;
    where.problem_at(
        list.places[i].label,
        fmt::format("hashes the same label {} as the server on line {}",
                    quoted(server.ring_label()), list.places[first->second].label.line),
        step(i, "label"));
  }
}

void check_ids(const ServerList& list, const Field& where) {
  std::unordered_map<std::uint32_t, std::size_t> seen;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const std::uint32_t id = list.servers[i].id;
    if (id == 0) continue;
    const auto [first, fresh] = seen.emplace(id % kIdCircle, i);
    if (fresh) continue;
    const std::uint32_t other = list.servers[first->second].id;
    const std::uint32_t line = list.places[first->second].id.line;
    where.problem_at(list.places[i].id,
                     other == id
                         ? fmt::format("duplicate id {}, already on line {}", id, line)
                         : fmt::format("id {} has the same points as id {} on line {}: they differ "
                                       "by a multiple of {}",
                                       id, other, line, kIdCircle),
                     step(i, "id"));
  }
}

// More points than a pool may have, and weights that all round to no point.
void check_points(const std::vector<Server>& servers, const WrittenRing& ring, const Field& where) {
  const ring::Scheme& scheme = ring.ring.scheme;
  const std::vector<ring::Member> members = members_of(servers);
  const std::vector<std::uint64_t> counts = ring::point_counts(scheme, members);
  const std::uint64_t total = std::reduce(counts.begin(), counts.end());
  const auto below_one = [&](const Server& server) { return server.weight * scheme.points < 1; };
  if (ring.facts->default_points != 0 && total == 0 && std::ranges::all_of(servers, below_one) &&
      std::ranges::any_of(servers, &Server::on_ring))
    where.problem(fmt::format("the weights are so small that no server has a point at points: {}",
                              scheme.points));
  if (total <= kMaxPoints) return;
  // Counts first, so this says what would fit and builds nothing.
  const auto refused = ring::build(scheme, members, kMaxPoints);
  const Field& at = ring.points ? *ring.points : where;
  at.problem(refused.error().message);
}

void check_table(const std::vector<Server>& servers, const WrittenRing& ring, const Field& where) {
  const auto owners = std::ranges::count_if(servers, &Server::on_ring);
  const std::uint32_t slots = ring.ring.scheme.table;
  if (ring.facts->placement == ring::Placement::maglev && owners > std::int64_t{slots})
    where.problem(
        fmt::format("{} servers share a table of {} slots; set ring.table to a larger "
                    "prime, best a hundred times as large",
                    owners, slots));
}

}  // namespace

std::string step(std::size_t index, std::string_view key) {
  return fmt::format("[{}].{}", index, key);
}

std::vector<Server> read_servers(const Field& where, const WrittenRing& ring) {
  ServerList list;
  const std::optional<std::vector<Field>> items = where.items();
  if (!items) return {};
  if (items->empty()) where.problem("the list of servers is empty");
  list.servers.reserve(items->size());
  list.places.reserve(items->size());
  for (const Field& item : *items) read_server(item, ring.facts, list);
  check_names(list, where);
  const auto weightless = [](const Server& server) { return server.weight == 0; };
  if (!ring.may_own_nothing && !items->empty() && std::ranges::all_of(list.servers, weightless))
    where.problem("the weights are all 0: no server would own a key");
  if (ring.facts == nullptr) return std::move(list.servers);
  if (!ring.facts->may_repeat_labels) check_labels(list, where);
  check_ids(list, where);
  check_points(list.servers, ring, where);
  check_table(list.servers, ring, where);
  const std::vector<Server> servers = list.servers;
  where.reading().report.when_valid([list = std::move(list), ring, where] {
    warn_of_servers(list, ring, where);
    warn_of_ring(list, ring, where);
  });
  return servers;
}

}  // namespace clockwise::config
