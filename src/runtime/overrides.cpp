#include "runtime/overrides.h"

#include <utility>

#include "runtime/effective.h"

namespace clockwise::runtime {

void Overrides::set(const config::Pool& pool, upstream::Placed instead) {
  config::Pool changed = pool;
  changed.ring = instead.ring;
  changed.servers = instead.servers;
  pools_.erase(pool.name);
  if (!same_placement(pool, changed)) pools_.emplace(pool.name, Override{pool, std::move(instead)});
}

std::vector<std::string> Overrides::apply(config::Config& written) {
  std::vector<std::string> forgotten;
  for (const auto& [name, override] : pools_) {
    const config::Pool* pool = written.pool(name);
    if (pool == nullptr || !same_placement(*pool, override.written)) forgotten.push_back(name);
  }
  for (const std::string& name : forgotten) pools_.erase(name);
  for (config::Pool& pool : written.pools) {
    const auto found = pools_.find(pool.name);
    if (found == pools_.end()) continue;
    pool.ring = found->second.instead.ring;
    pool.servers = found->second.instead.servers;
  }
  return forgotten;
}

}  // namespace clockwise::runtime
