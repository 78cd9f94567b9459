#include "runtime/way_back.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "upstream/plan.h"
#include "upstream/server_state.h"

namespace clockwise::runtime {
namespace {

using config::Server;
using Servers = std::unordered_map<std::string_view, const Server*>;

constexpr std::size_t kMostEdits = 100;  // an answer should stay readable

Servers by_name(const std::vector<Server>& servers) {
  Servers found;
  for (const Server& server : servers) found.emplace(server.name, &server);
  return found;
}

const Server* find(const Servers& servers, const std::string& name) {
  const auto found = servers.find(name);
  return found == servers.end() ? nullptr : found->second;
}

std::string addition(const Server& server) {
  std::string text =
      fmt::format("add {} at {}, weight {}", server.name, server.address.text, server.weight);
  if (server.state != config::ServerState::active)
    text += fmt::format(", state {}", upstream::to_string(server.state));
  if (server.label) text += fmt::format(", label \"{}\"", *server.label);
  if (server.id != 0) text += fmt::format(", id {}", server.id);
  if (!server.zone.empty()) text += fmt::format(", zone {}", server.zone);
  return text;
}

void add_changes(const Server& now, const Server& there, std::vector<std::string>& edits) {
  const auto set = [&](std::string_view what, const auto& is, const auto& was) {
    if (is != was) edits.push_back(fmt::format("set the {} of {} to {}", what, now.name, was));
  };
  set("weight", now.weight, there.weight);
  set("state", upstream::to_string(now.state), upstream::to_string(there.state));
  set("label", now.ring_label(), there.ring_label());
  if (there.id != 0)
    set("id", now.id, there.id);
  else if (now.id != 0)
    edits.push_back(fmt::format("remove the id of {}", now.name));
}

std::vector<std::string> names_of(const std::vector<Server>& servers) {
  std::vector<std::string> names;
  names.reserve(servers.size());
  for (const Server& server : servers) names.push_back(server.name);
  return names;
}

// The names as they stand once servers were removed, and others added at the end.
std::vector<std::string> order_after(const std::vector<Server>& running, const Servers& now,
                                     const std::vector<Server>& there, const Servers& wanted) {
  std::vector<std::string> names;
  for (const Server& server : running)
    if (find(wanted, server.name) != nullptr) names.push_back(server.name);
  for (const Server& server : there)
    if (find(now, server.name) == nullptr) names.push_back(server.name);
  return names;
}

bool order_decides(config::Pool pool, const upstream::Placed& there) {
  pool.ring = there.ring;
  pool.servers = there.servers;
  const auto ring = upstream::build_ring(pool);
  return ring && (*ring)->order_matters();
}

}  // namespace

upstream::Placed brought_up_to_date(upstream::Placed history, const config::Pool& running,
                                    const config::Pool& written) {
  const Servers here = by_name(running.servers), in_file = by_name(written.servers);
  for (Server& server : history.servers) {
    const Server* known = find(here, server.name);
    if (known == nullptr) known = find(in_file, server.name);
    if (known == nullptr) continue;
    Server placed = *known;
    placed.weight = server.weight;
    placed.state = server.state;
    placed.label = std::move(server.label);
    placed.id = server.id;
    server = std::move(placed);
  }
  return history;
}

std::string edits(const config::Pool& now, const upstream::Placed& there) {
  const Servers running = by_name(now.servers), wanted = by_name(there.servers);
  std::vector<std::string> edits;
  for (const Server& server : now.servers)
    if (find(wanted, server.name) == nullptr) edits.push_back("remove " + server.name);
  for (const Server& server : there.servers) {
    const Server* before = find(running, server.name);
    if (before == nullptr)
      edits.push_back(addition(server));
    else
      add_changes(*before, server, edits);
  }
  if (edits.size() > kMostEdits) {
    const std::size_t more = edits.size() - kMostEdits;
    edits.resize(kMostEdits);
    edits.push_back(fmt::format("and {} more", more));
  }
  const std::vector<std::string> order = names_of(there.servers);
  if (order_after(now.servers, running, there.servers, wanted) != order &&
      order_decides(now, there))
    edits.push_back(fmt::format("set the order of the servers to {}", fmt::join(order, ", ")));
  if (now.ring != there.ring)
    edits.push_back("set the ring of the pool as it was: " +
                    to_text(upstream::Placed{there.ring, {}, there.protocol}));
  return fmt::format("{}", fmt::join(edits, "; "));
}

}  // namespace clockwise::runtime
