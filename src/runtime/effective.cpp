#include "runtime/effective.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "upstream/plan.h"

namespace clockwise::runtime {
namespace {

std::vector<config::Server> by_name(std::vector<config::Server> servers) {
  std::ranges::sort(servers, {}, &config::Server::name);
  return servers;
}

config::Config in_canonical_order(config::Config config) {
  std::ranges::sort(config.listeners, {}, &config::Listener::name);
  for (config::Pool& pool : config.pools) pool.servers = by_name(std::move(pool.servers));
  return config;
}

// Is one list of servers as good as the other? Another order is another ring where the scheme goes
// by it, which the ring knows.
bool same_servers(const config::Pool& a, const config::Pool& b) {
  if (a.servers == b.servers) return true;
  if (by_name(a.servers) != by_name(b.servers)) return false;
  const auto ring = upstream::build_ring(a);
  return ring && !(*ring)->order_matters();
}

template <class T>
void keep(const std::string& path, const T& running, T& asked, Effective& effective) {
  if (running == asked) return;
  asked = running;
  effective.not_applied.push_back({path, "needs a restart"});
}

}  // namespace

Effective keep_until_restart(const config::Config& running, config::Config asked,
                             std::size_t max_workers) {
  Effective effective{std::move(asked), {}};
  config::Config& config = effective.config;
  // Another user may not open further sockets on the ports that root has taken.
  const std::size_t most = running.user.empty() ? max_workers : running.workers;
  if (config.workers > most) {
    config.workers = running.workers;
    effective.not_applied.push_back({"workers", fmt::format("more than {} need a restart", most)});
  }
  keep("admin.address", running.admin.address, config.admin.address, effective);
  keep("user", running.user, config.user, effective);
  keep("state_dir", running.state_dir, config.state_dir, effective);
  return effective;
}

bool same_meaning(const config::Config& a, const config::Config& b) {
  return in_canonical_order(a) == in_canonical_order(b) &&
         std::ranges::equal(a.pools, b.pools, same_servers);
}

bool same_placement(const config::Pool& a, const config::Pool& b) {
  return a.servers_file == b.servers_file && a.ring == b.ring && same_servers(a, b);
}

}  // namespace clockwise::runtime
