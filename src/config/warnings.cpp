// Names, labels, addresses and states (see warnings.h).
#include "config/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace clockwise::config {
namespace {

// A name that the peer may well have hashed: an address, a host name, a socket.
bool may_be_peers_text(std::string_view name) {
  return looks_like_address(name) || name.find('.') != std::string_view::npos ||
         name.starts_with("unix:");
}

void warn_of_address_names(const ServerList& list, const Field& where) {
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const Server& server = list.servers[i];
    if (server.label || !looks_like_address(server.name)) continue;
    where.warn_at(list.places[i].name,
                  fmt::format("{} is an address, not a name: a machine that takes over under a new "
                              "address would be a new server, and its keys would scatter",
                              quoted(server.name)),
                  step(i, "name"));
  }
}

// One for all: they are hardly wrong one by one.
void warn_of_missing_labels(const ServerList& list, const WrittenRing& ring, const Field& where) {
  std::optional<std::size_t> first;
  std::size_t further = 0;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const Server& server = list.servers[i];
    if (server.label || may_be_peers_text(server.name)) continue;
    first ? void(++further) : void(first = i);
  }
  if (!first) return;
  const Server& server = list.servers[*first];
  const bool aliases = ring.facts->placement == ring::Placement::twemproxy;
  where.warn_at(
      list.places[*first].name,
      fmt::format("the ring hashes the name {}; {} hashed the text of its own configuration, such "
                  "as {}{}: set label to that text{}",
                  quoted(server.name), ring.facts->peer, server.address.text,
                  aliases ? " or an alias" : "",
                  further == 0 ? "" : fmt::format(" (and of {} more)", further)),
      step(*first, "name"));
}

void warn_of_shared_labels(const ServerList& list, const Field& where) {
  std::unordered_map<std::string_view, Place> seen;
  for (std::size_t i = 0; i < list.servers.size(); ++i) {
    const std::string& label = list.servers[i].ring_label();
    const auto [first, fresh] = seen.emplace(label, list.places[i].label);
    if (fresh) continue;
    where.warn_at(list.places[i].label,
                  fmt::format("{} is also what the ring hashes for the server on line {}: to nginx "
                              "the two are one owner, with the larger of their weights",
                              quoted(label), first->second.line),
                  step(i, "label"));
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

void warn_of_dominance(const ServerList& list, const Field& where) {
  double total = 0;
  for (const Server& server : list.servers) total += server.on_ring() ? server.weight : 0;
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
  if (ring.facts->hashes_address)
    warn_of_missing_labels(list, ring, where);
  else
    warn_of_address_names(list, where);
  if (ring.facts->placement == ring::Placement::nginx) warn_of_shared_labels(list, where);
  warn_of_shared_addresses(list, where);
  const auto owners = std::ranges::count_if(list.servers, &Server::on_ring);
  if (owners == 0 && !ring.may_own_nothing)
    where.warn_at(where.place(), "no server is active: no key has an owner");
  if (owners >= 3) warn_of_dominance(list, where);
}

}  // namespace clockwise::config
