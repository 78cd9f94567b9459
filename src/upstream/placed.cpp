#include "upstream/placed.h"

#include <boost/algorithm/string/replace.hpp>
#include <boost/json.hpp>

#include "config/load.h"
#include "upstream/json.h"
#include "upstream/plan.h"
#include "upstream/server_state.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;

// The configuration takes ${NAME} from the environment, and $${ for what these two characters are.
json::value plain(const std::string& text) {
  return json::value(boost::algorithm::replace_all_copy(text, "${", "$${"));
}

void set_parameter(json::object& ring, std::string_view name, const ring::Scheme& scheme) {
  if ((name == "hash" || name == "key_hash") && !scheme.hash.empty()) ring[name] = scheme.hash;
  if (name == "form") ring[name] = scheme.form;
  if (name == "distribution") ring[name] = scheme.distribution;
  if (name == "avalanche" && scheme.avalanche) ring[name] = *scheme.avalanche;
  if (name == "min_size") ring[name] = scheme.min_size;
  if (name == "max_size") ring[name] = scheme.max_size;
  if (name == "table") ring[name] = scheme.table;
  if (name == "label") ring[name] = plain(scheme.label);
  if (name == "bits") ring[name] = scheme.bits;
  if (name == "points") ring[name] = scheme.points;
}

json::object to_json(const config::Ring& ring) {
  json::object object{{"scheme", ring::to_string(ring.scheme.placement)}};
  for (const std::string_view parameter : ring::facts(ring.scheme.placement).parameters)
    set_parameter(object, parameter, ring.scheme);
  if (!ring.scheme.hash_tag.empty()) object["hash_tag"] = plain(ring.scheme.hash_tag);
  if (ring.replicas > 1) object["replicas"] = ring.replicas;
  return object;
}

// Where HTTP has its keys.
void set_key(json::object& object, const config::Ring& ring) {
  object["key"] = plain(ring.key);
  if (ring.key_ignore.empty()) return;
  json::array names;
  for (const std::string& name : ring.key_ignore) names.push_back(plain(name));
  object["key_ignore"] = std::move(names);
}

json::object memcached(const config::Ring& ring) {
  json::object object{{"key", plain(ring.key)}};
  if (!ring.scheme.key_namespace.empty()) object["namespace"] = plain(ring.scheme.key_namespace);
  return object;
}

json::object to_json(const config::Server& server) {
  json::object object{{"name", server.name}, {"address", plain(server.address.text)}};
  if (server.weight != 1) object["weight"] = server.weight;
  if (server.state != config::ServerState::active) object["state"] = to_string(server.state);
  if (!server.zone.empty()) object["zone"] = plain(server.zone);
  if (server.label) object["label"] = plain(*server.label);
  if (server.id != 0) object["id"] = server.id;
  return object;
}

// A whole configuration around the one pool, as the reader wants it.
std::string as_configuration(const std::string& pool) {
  return R"({"listeners": [{"name": "any", "address": "127.0.0.1:0", "pool": "any"}],
             "pools": {"any": )" +
         pool + "}}";
}

}  // namespace

Placed placed(const config::Pool& pool) { return {pool.ring, pool.servers, pool.protocol}; }

std::string to_text(const Placed& placed) {
  json::array servers;
  servers.reserve(placed.servers.size());
  for (const config::Server& server : placed.servers) servers.push_back(to_json(server));
  json::object object, ring = to_json(placed.ring);
  if (placed.protocol == config::Protocol::memcached) {
    object["protocol"] = "memcached";
    object["memcached"] = memcached(placed.ring);
  } else {
    set_key(ring, placed.ring);
  }
  object["ring"] = std::move(ring);
  object["servers"] = std::move(servers);
  return to_text(object);
}

Result<Placed> parse_placed(const std::string& text) {
  const auto read = [&](const std::string&) {
    return std::variant<std::string, std::string>(std::in_place_index<0>, as_configuration(text));
  };
  config::LoadResult loaded =
      config::load("history", read, [](std::string_view) { return std::nullopt; });
  if (const auto* failure = std::get_if<config::Failure>(&loaded))
    return fail(failure->problems.front().message);
  config::Pool& pool = std::get<config::Loaded>(loaded).config.pools.front();
  return Placed{std::move(pool.ring), std::move(pool.servers), pool.protocol};
}

}  // namespace clockwise::upstream
