#include "upstream/lookup.h"

#include <boost/json.hpp>

#include "upstream/owners.h"

namespace clockwise::upstream {

namespace json = boost::json;

std::vector<ring::Point> walk(const config::Pool& pool, const ring::Ring& ring,
                              ring::Position position, std::size_t limit) {
  std::vector<ring::Point> steps;
  std::vector<ring::ServerIndex> met;
  while (steps.size() < limit) {
    const auto next = next_owner(pool, ring, position, met);
    if (!next) break;
    steps.push_back(*next);
    met.push_back(next->server);
  }
  return steps;
}

KeyPlace locate(const config::Pool& pool, const ring::Ring& ring, ring::Position position,
                std::uint32_t replicas) {
  KeyPlace place{position, {}};
  for (const ring::Point& step : walk(pool, ring, position, replicas))
    place.owners.push_back(step.server);
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
