#include "cli/fleet_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <set>

#include "cli/json_at.h"
#include "upstream/json.h"

namespace clockwise::cli {

namespace {

namespace json = boost::json;

using Servers = std::map<std::string_view, const FleetServer*>;

FleetServer read_server(const json::object& object) {
  FleetServer server;
  server.name = server.label = text_at(object, "name");
  server.weight = number_at(object, "weight");
  server.state = text_at(object, "state");
  if (object.contains("label")) server.label = text_at(object, "label");
  server.id = static_cast<std::uint32_t>(number_at(object, "id"));
  server.zone = text_at(object, "zone");
  return server;
}

std::string setting_text(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : upstream::to_text(value);
}

const FleetPool* pool_of(const FleetProxy& proxy, std::string_view name) {
  const auto found = std::ranges::find(proxy.pools, name, &FleetPool::name);
  return found == proxy.pools.end() ? nullptr : &*found;
}

Servers by_name(const FleetPool& pool) {
  Servers servers;
  for (const FleetServer& server : pool.servers) servers[server.name] = &server;
  return servers;
}

// Draining and down are the same for a ring.
bool active(const FleetServer& server) { return server.state == "active"; }

std::string instead(std::string_view what, const auto& here, const auto& usual) {
  return fmt::format("{} {} instead of {}", what, here, usual);
}

class Comparison {
 public:
  explicit Comparison(const std::string& pool) : pool_(pool) {}

  void compare(const Camp& camp, const Camp& usual) {
    urls_.clear();
    for (const FleetProxy* proxy : camp.proxies) urls_.push_back(proxy->url);
    const FleetPool& here = *pool_of(*camp.proxies.front(), pool_);
    const FleetPool& there = *pool_of(*usual.proxies.front(), pool_);
    found_ = false;
    compare_settings(here, there);
    zones_count_ = setting(here, "replicas") != "none" && setting(there, "replicas") != "none";
    compare_servers(by_name(here), by_name(there));
    if (!found_) add(nullptr, unexplained(here, there));
  }

  void add_presence(const Camp& missing, const std::vector<Camp>& camps) {
    std::vector<std::string> have;
    for (const Camp& camp : camps)
      if (camp.digest)
        for (const FleetProxy* proxy : camp.proxies) have.push_back(proxy->url);
    const bool rare = missing.proxies.size() > have.size();
    urls_ = std::move(have);
    if (!rare) {
      urls_.clear();
      for (const FleetProxy* proxy : missing.proxies) urls_.push_back(proxy->url);
    }
    add(nullptr, rare ? "the others lack this pool" : "the pool is missing");
  }

  std::vector<Difference> take() {
    std::vector<Difference> all;
    for (auto& [server, difference] : found_by_server_) all.push_back(std::move(difference));
    return all;
  }

 private:
  // "" stands for the ring itself and sorts first.
  void add(const std::string* server, std::string text) {
    found_ = true;
    Difference& difference = found_by_server_[server ? *server : std::string()];
    difference.pool = pool_;
    if (server) difference.server = *server;
    auto& findings = difference.findings;
    const auto known = std::ranges::find(findings, text, &Finding::text);
    if (known == findings.end())
      findings.push_back({std::move(text), urls_});
    else
      known->urls.insert(known->urls.end(), urls_.begin(), urls_.end());
  }

  void compare_settings(const FleetPool& here, const FleetPool& there) {
    if (here.ring.empty() || there.ring.empty()) return;
    const bool other_scheme = setting(here, "scheme") != setting(there, "scheme");
    std::set<std::string_view> names;
    for (const auto& [name, value] : here.ring) names.insert(name);
    for (const auto& [name, value] : there.ring) names.insert(name);
    for (const std::string_view name : names) {
      const bool both = here.ring.contains(name) && there.ring.contains(name);
      if (other_scheme && !both) continue;  // it has other parameters
      if (setting(here, name) != setting(there, name))
        add(nullptr, instead(name, setting(here, name), setting(there, name)));
    }
  }

  static std::string setting(const FleetPool& pool, std::string_view name) {
    const auto found = pool.ring.find(name);
    return found == pool.ring.end() ? "none" : found->second;
  }

  void compare_servers(const Servers& here, const Servers& there) {
    for (const auto& [name, server] : there)
      if (!here.contains(name)) add(&server->name, "missing");
    for (const auto& [name, server] : here) {
      const auto usual = there.find(name);
      if (usual == there.end())
        add(&server->name, fmt::format("only there, weight {}", server->weight));
      else
        compare_server(*server, *usual->second);
    }
  }

  void compare_server(const FleetServer& here, const FleetServer& usual) {
    if (here.weight != usual.weight) add(&here.name, instead("weight", here.weight, usual.weight));
    if (active(here) != active(usual)) add(&here.name, instead("state", here.state, usual.state));
    if (here.label != usual.label) add(&here.name, instead("label", here.label, usual.label));
    if (here.id != usual.id) add(&here.name, instead("id", here.id, usual.id));
    if (zones_count_ && here.zone != usual.zone)
      add(&here.name, instead("zone", or_none(here.zone), or_none(usual.zone)));
  }

  static std::string_view or_none(std::string_view zone) { return zone.empty() ? "none" : zone; }

  static std::string unexplained(const FleetPool& here, const FleetPool& there) {
    if (here.ring.empty() || there.ring.empty())
      return "the rings differ in what a proxy of this version does not tell";
    if (!std::ranges::equal(here.servers, there.servers, {}, &FleetServer::name,
                            &FleetServer::name))
      return "the servers are listed in another order, which this scheme goes by";
    return "the digests differ though all that is told is the same: are the versions?";
  }

  const std::string& pool_;
  std::vector<std::string> urls_;  // of the camp that is compared
  bool found_ = false;
  bool zones_count_ = false;
  std::map<std::string, Difference> found_by_server_;
};

std::vector<Difference> differences_of(const std::string& pool, const std::vector<Camp>& camps) {
  Comparison comparison(pool);
  const auto usual =
      std::ranges::find_if(camps, [](const Camp& camp) { return bool(camp.digest); });
  for (const Camp& camp : camps) {
    if (!camp.digest)
      comparison.add_presence(camp, camps);
    else if (&camp != &*usual)
      comparison.compare(camp, *usual);
  }
  return comparison.take();
}

}  // namespace

std::vector<std::string> Difference::urls() const {
  std::vector<std::string> all;
  for (const Finding& finding : findings)
    for (const std::string& url : finding.urls)
      if (std::ranges::find(all, url) == all.end()) all.push_back(url);
  return all;
}

Result<std::vector<FleetPool>> fleet_pools(const json::object& answer) {
  const json::value* const told = answer.if_contains("pools");
  if (told == nullptr || !told->is_array()) return fail("no pools");
  std::vector<FleetPool> pools;
  for (const json::value& item : told->get_array()) {
    if (!item.is_object()) return fail("a pool that is no object");
    const json::object& object = item.get_object();
    FleetPool pool{text_at(object, "name"), text_at(object, "digest"), {}, {}};
    if (pool.name.empty() || pool.digest.empty()) return fail("a pool without name or digest");
    for (const auto& setting : object_at(object, "ring"))
      pool.ring[setting.key()] = setting_text(setting.value());
    for (const json::value& server : array_at(object, "servers"))
      if (server.is_object()) pool.servers.push_back(read_server(server.get_object()));
    pools.push_back(std::move(pool));
  }
  return pools;
}

Camps camps_of(const std::vector<FleetProxy>& proxies) {
  Camps camps;
  for (const FleetProxy& proxy : proxies)
    for (const FleetPool& pool : proxy.pools) camps[pool.name];
  for (auto& [name, of_pool] : camps) {
    for (const FleetProxy& proxy : proxies) {
      if (proxy.error) continue;
      const FleetPool* pool = pool_of(proxy, name);
      const auto digest = pool ? std::optional(pool->digest) : std::nullopt;
      auto camp = std::ranges::find(of_pool, digest, &Camp::digest);
      if (camp == of_pool.end()) camp = of_pool.insert(camp, Camp{digest, {}});
      camp->proxies.push_back(&proxy);
    }
    std::ranges::sort(of_pool, [](const Camp& a, const Camp& b) {
      if (a.proxies.size() != b.proxies.size()) return a.proxies.size() > b.proxies.size();
      return a.proxies.front() < b.proxies.front();
    });
  }
  return camps;
}

std::vector<Difference> differences(const Camps& camps) {
  std::vector<Difference> all;
  for (const auto& [pool, of_pool] : camps)
    for (Difference& difference : differences_of(pool, of_pool))
      all.push_back(std::move(difference));
  return all;
}

}  // namespace clockwise::cli
