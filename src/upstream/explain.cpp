#include "upstream/explain.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "metrics/catalogue.h"
#include "ring/key_part.h"
#include "upstream/choose.h"
#include "upstream/owners.h"
#include "upstream/server_state.h"

namespace clockwise::upstream {

namespace {

namespace json = boost::json;

constexpr std::size_t kPointsShown = 4;  // from the hash on

// Where the points "from the hash on" begin, as an index of ring.points().
std::size_t first_from(const ring::Ring& ring, ring::Position at) {
  const std::span<const ring::Point> points = ring.points();
  const auto found = std::ranges::lower_bound(points, at, {}, &ring::Point::position);
  return found == points.end() ? 0 : static_cast<std::size_t>(found - points.begin());
}

void look_around(const ring::Ring& ring, Explanation& result) {
  const std::span<const ring::Point> points = ring.points();
  if (points.empty()) return;
  if (const std::size_t slots = ring.layout().table.size(); slots > 0)
    result.slot = result.place.hash % slots;
  const std::size_t first = first_from(ring, result.slot.value_or(result.place.hash));
  result.before = points[(first + points.size() - 1) % points.size()];
  for (std::size_t i = 0; i < std::min(kPointsShown, points.size()); ++i)
    result.after.push_back(points[(first + i) % points.size()]);
}

// An item has several owners: the first that can be asked is.
bool choose_owner(const config::Pool& pool, const ring::Ring& ring, const LivePool& live,
                  Explanation& result) {
  if (pool.ring.replicas < 2) return false;
  const Owners owners(pool, ring, result.place.hash);
  for (std::uint32_t place = 0; place < owners.size(); ++place) {
    const ring::ServerIndex owner = owners[place];
    const bool known = !live.servers.empty();
    if (known && !live.servers[owner].reachable) continue;
    if (known && !live.servers[owner].usable && !live.panic) continue;
    result.chosen = owner;
    result.reason = place == 0 ? metrics::Routed::home : metrics::Routed::failover;
    return true;
  }
  return false;
}

void choose(const config::Pool& pool, const ring::Ring& ring, const LivePool& live,
            Explanation& result) {
  if (ring.points().empty() || choose_owner(pool, ring, live, result)) return;
  const ring::Position position = result.place.hash;
  const Rules rules{pool.failover, live.panic};
  const auto unusable = [&](ring::ServerIndex server) {
    return !live.servers.empty() && !live.servers[server].usable;
  };
  std::vector<ring::ServerIndex> tried;
  while (tried.size() <= pool.retry.attempts) {
    const auto server = next_server(ring, position, tried, rules, unusable);
    if (!server) return;
    if (live.servers.empty() || live.servers[*server].reachable) {
      const bool home = *server == ring.owner(position);
      result.chosen = server;
      result.reason = home ? metrics::Routed::home : metrics::Routed::failover;
      return;
    }
    tried.push_back(*server);
  }
}

json::object point(const config::Pool& pool, const ring::Point& point) {
  return {{"position", std::to_string(point.position)},
          {"server", pool.servers[point.server].name}};
}

json::object step(const config::Pool& pool, const Step& step, const LivePool& live) {
  const config::Server& server = pool.servers[step.server];
  json::object object{{"position", nullptr},
                      {"server", server.name},
                      {"address", server.address.text},
                      {"state", to_string(server.state)},
                      {"health", "unknown"},
                      {"requests_in_flight", nullptr}};
  if (step.position) object["position"] = std::to_string(*step.position);
  if (live.servers.empty()) return object;
  object["health"] = live.servers[step.server].health;
  object["requests_in_flight"] = live.servers[step.server].in_flight;
  return object;
}

}  // namespace

Explanation explain(const config::Pool& pool, const ring::Ring& ring, const Question& question,
                    std::uint32_t replicas, const LivePool& live) {
  Explanation result;
  result.place.hash = question.position;
  if (question.is_key)
    result.canonical = ring::canonical_key(question.text, pool.ring.scheme.part());
  look_around(ring, result);
  for (const ring::Point& met :
       walk(pool, ring, question.position, std::max(replicas, kWalkShown))) {
    if (result.place.owners.size() < replicas) result.place.owners.push_back(met.server);
    result.walk.push_back({met.position, met.server});
  }
  for (ring::ServerIndex i = 0; i < pool.servers.size(); ++i)
    if (!pool.servers[i].on_ring()) result.walk.push_back({std::nullopt, i});
  choose(pool, ring, live, result);
  return result;
}

json::object to_json(const config::Pool& pool, const Question& question,
                     const Explanation& explanation, const LivePool& live,
                     const std::optional<std::string>& previous) {
  json::object object = to_json(pool, question.text, explanation.place, previous);
  object["canonical_key"] =
      explanation.canonical ? json::value(*explanation.canonical) : json::value(nullptr);
  object["slot"] =
      explanation.slot ? json::value(std::to_string(*explanation.slot)) : json::value(nullptr);
  object["point_before"] =
      explanation.before ? json::value(point(pool, *explanation.before)) : json::value(nullptr);
  json::array after, steps;
  for (const ring::Point& next : explanation.after) after.push_back(point(pool, next));
  for (const Step& next : explanation.walk) steps.push_back(step(pool, next, live));
  object["points_after"] = std::move(after);
  object["walk"] = std::move(steps);
  object["chosen"] = nullptr;
  object["reason"] = nullptr;
  if (explanation.chosen) object["chosen"] = pool.servers[*explanation.chosen].name;
  if (explanation.reason)
    object["reason"] = metrics::kRouted[static_cast<std::size_t>(*explanation.reason)];
  return object;
}

}  // namespace clockwise::upstream
