#include "config/model.h"

namespace clockwise::config {

std::string_view to_string(Protocol protocol) noexcept {
  return protocol == Protocol::memcached ? "memcached" : "http";
}

std::vector<ring::Member> members_of(const std::vector<Server>& servers) {
  std::vector<ring::Member> members;
  members.reserve(servers.size());
  for (const Server& server : servers)
    members.push_back({.label = server.ring_label(),
                       .weight = server.weight,
                       .id = server.id,
                       .live = server.state == ServerState::active,
                       .name = server.name});
  return members;
}

}  // namespace clockwise::config
