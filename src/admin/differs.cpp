#include "admin/differs.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>
#include <unordered_set>

namespace clockwise::admin {
namespace {

namespace json = boost::json;

json::object difference(const std::string& pool, json::value server, json::array what) {
  return {{"pool", pool}, {"server", std::move(server)}, {"overridden", std::move(what)}};
}

// The names of one list that the other has too, in the order of the one.
std::vector<std::string_view> common_names(const config::Pool& of, const config::Pool& with) {
  std::unordered_set<std::string_view> known;
  for (const config::Server& server : with.servers) known.insert(server.name);
  std::vector<std::string_view> names;
  for (const config::Server& server : of.servers)
    if (known.contains(server.name)) names.push_back(server.name);
  return names;
}

// Is the order another one than the file's, where the ring goes by it?
bool reordered(const upstream::View& view, const config::Pool& written,
               const config::Pool& running) {
  return view.routing->pool(running.name)->ring->order_matters() &&
         common_names(written, running) != common_names(running, written);
}

void add_differences(const upstream::View& view, const config::Pool& running, json::array& all) {
  const config::Pool* written = view.written->pool(running.name);
  if (written != nullptr && written->ring != running.ring)
    all.push_back(difference(running.name, nullptr, json::array{"ring"}));
  if (written != nullptr && reordered(view, *written, running))
    all.push_back(difference(running.name, nullptr, json::array{"order"}));
  const WrittenServers servers(view, running.name);
  for (const config::Server& server : running.servers)
    if (json::array what = servers.overridden(server); !what.empty())
      all.push_back(difference(running.name, json::string(server.name), std::move(what)));
  for (const std::string_view name : servers.removed(running))
    all.push_back(difference(running.name, json::string(name), json::array{"removed"}));
}

}  // namespace

WrittenServers::WrittenServers(const upstream::View& view, std::string_view pool) {
  if (view.written == view.config) return;
  as_written_ = false;
  if (const config::Pool* written = view.written->pool(pool))
    for (const config::Server& server : written->servers) servers_.emplace(server.name, &server);
}

json::array WrittenServers::overridden(const config::Server& running) const {
  if (as_written_) return {};
  const auto found = servers_.find(running.name);
  if (found == servers_.end()) return json::array{"added"};
  const config::Server& written = *found->second;
  json::array what;
  if (running.weight != written.weight) what.emplace_back("weight");
  if (running.state != written.state) what.emplace_back("state");
  if (running.address != written.address) what.emplace_back("address");
  if (running.zone != written.zone) what.emplace_back("zone");
  if (running.ring_label() != written.ring_label()) what.emplace_back("label");
  if (running.id != written.id) what.emplace_back("id");
  return what;
}

std::vector<std::string_view> WrittenServers::removed(const config::Pool& running) const {
  std::unordered_set<std::string_view> here;
  for (const config::Server& server : running.servers) here.insert(server.name);
  std::vector<std::string_view> names;
  for (const auto& [name, server] : servers_)
    if (!here.contains(name)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

json::array differs_from_file(const upstream::View& view) {
  json::array all;
  if (!view.config || view.written == view.config) return all;
  for (const config::Pool& pool : view.config->pools) add_differences(view, pool, all);
  return all;
}

}  // namespace clockwise::admin
