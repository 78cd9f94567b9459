#include "config/model.h"

namespace clockwise::config {

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
