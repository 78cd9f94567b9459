#include "runtime/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/effective.h"

namespace clockwise::runtime {

namespace {

// A pointer into the list, or null.
template <class Servers>
auto* find(Servers& servers, const std::string& name) {
  const auto found = std::ranges::find(servers, name, &config::Server::name);
  return found == servers.end() ? nullptr : &*found;
}

}  // namespace

void Overrides::set(const config::Pool& pool, upstream::Placed instead) {
  config::Pool changed = pool;
  changed.ring = instead.ring;
  changed.servers = instead.servers;
  pools_.erase(pool.name);
  std::erase_if(servers_, [&](const auto& entry) { return entry.first.first == pool.name; });
  if (!same_placement(pool, changed)) pools_.emplace(pool.name, OfPool{pool, std::move(instead)});
}

void Overrides::set_server(const config::Pool& pool, const config::Pool& running,
                           const config::Server& changed) {
  if (pools_.contains(pool.name)) {
    upstream::Placed instead = upstream::placed(running);
    *find(instead.servers, changed.name) = changed;
    return set(pool, std::move(instead));
  }
  const std::pair key{pool.name, changed.name};
  servers_.erase(key);
  const config::Server* written = find(pool.servers, changed.name);
  if (written != nullptr && *written != changed)
    servers_.emplace(key, OfServer{*written, changed.state, changed.weight});
}

std::vector<std::string> Overrides::apply(config::Config& written) {
  std::vector<std::string> forgotten;
  apply_pools(written, forgotten);
  apply_servers(written, forgotten);
  return forgotten;
}

void Overrides::apply_pools(config::Config& written, std::vector<std::string>& forgotten) {
  std::erase_if(pools_, [&](const auto& entry) {
    const config::Pool* pool = written.pool(entry.first);
    if (pool != nullptr && same_placement(*pool, entry.second.written)) return false;
    forgotten.push_back("pool " + entry.first);
    return true;
  });
  for (config::Pool& pool : written.pools) {
    const auto found = pools_.find(pool.name);
    if (found == pools_.end()) continue;
    pool.ring = found->second.instead.ring;
    pool.servers = found->second.instead.servers;
  }
}

void Overrides::apply_servers(config::Config& written, std::vector<std::string>& forgotten) {
  std::erase_if(servers_, [&](const auto& entry) {
    const auto& [name, override] = entry;
    const auto pool = std::ranges::find(written.pools, name.first, &config::Pool::name);
    config::Server* server =
        pool == written.pools.end() ? nullptr : find(pool->servers, name.second);
    if (server == nullptr || *server != override.written) {
      forgotten.push_back(fmt::format("server {} of pool {}", name.second, name.first));
      return true;
    }
    server->state = override.state;
    server->weight = override.weight;
    return false;
  });
}

}  // namespace clockwise::runtime
