#include "runtime/way_back.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  set("address", now.address.text, there.address.text);
  set("label", now.ring_label(), there.ring_label());
  set("id", now.id, there.id);
}

}  // namespace

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
  if (now.ring != there.ring)
    edits.push_back("set the ring of the pool as it was: " +
                    to_text(upstream::Placed{there.ring, {}}));
  return fmt::format("{}", fmt::join(edits, "; "));
}

}  // namespace clockwise::runtime
