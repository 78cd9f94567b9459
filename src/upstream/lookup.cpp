#include "upstream/lookup.h"

#include <boost/json.hpp>

namespace clockwise::upstream {

namespace json = boost::json;

KeyPlace locate(const ring::Ring& ring, ring::Position position, std::uint32_t replicas) {
  KeyPlace place{position, {}};
  while (place.owners.size() < replicas) {
    const auto next = ring.successor(position, place.owners);
    if (!next) break;
    place.owners.push_back(next->server);
  }
  return place;
}

json::object to_json(const config::Pool& pool, std::string_view key, const KeyPlace& place,
                     const std::optional<std::string>& previous) {
  json::object object{{"key", key},
                      {"hash", std::to_string(place.hash)},
                      {"server", nullptr},
                      {"address", nullptr}};
  if (!place.owners.empty()) {
    const config::Server& home = pool.servers[place.owners.front()];
    object["server"] = home.name;
    object["address"] = home.address.text;
  }
  json::array replicas;
  for (const ring::ServerIndex owner : place.owners)
    replicas.emplace_back(pool.servers[owner].name);
  object["replicas"] = std::move(replicas);
  object["previous"] = previous ? json::value(*previous) : json::value(nullptr);
  return object;
}

}  // namespace clockwise::upstream
