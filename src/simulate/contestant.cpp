#include "simulate/contestant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "ring/literature.h"
#include "simulate/bounded.h"
#include "simulate/jump.h"
#include "simulate/rendezvous.h"
#include "simulate/slots.h"

namespace clockwise::simulate {
namespace {

using BuiltRing = std::shared_ptr<const ring::Ring>;

struct Named {
  Kind kind;
  std::string_view name;
};
constexpr Named kBesideRings[] = {{Kind::bounded, "bounded"},
                                  {Kind::slots, "slots"},
                                  {Kind::rendezvous, "rendezvous"},
                                  {Kind::jump, "jump"}};

Contestant of_placement(Kind kind, const ring::SchemeFacts& facts) {
  Contestant made{.kind = kind, .scheme = {}};
  made.scheme.placement = facts.placement;
  if (facts.default_points != 0) made.scheme.points = facts.default_points;
  return made;
}

Result<void> check_weights(const Contestant& contestant, const Nodes& nodes) {
  const ring::SchemeFacts& facts = ring::facts(contestant.scheme.placement);
  const bool by_scheme = contestant.kind == Kind::ring || contestant.kind == Kind::bounded;
  for (const Node& node : nodes) {
    const auto refuse = [&](std::string_view wanted) {
      return fail(
          fmt::format("{} takes {}, {} has {}", name(contestant), wanted, node.name, node.weight));
    };
    if (contestant.kind == Kind::jump && node.weight != 1) return refuse("no weights but 1");
    if (!by_scheme) continue;
    if (facts.whole_weights && node.weight != std::floor(node.weight))
      return refuse("whole weights");
    if (node.weight > facts.max_weight)
      return refuse(fmt::format("weights up to {}", facts.max_weight));
  }
  return {};
}

Result<BuiltRing> build(const Contestant& contestant, const Nodes& nodes) {
  const auto servers = static_cast<std::uint32_t>(nodes.size());
  if (contestant.kind == Kind::siphash)
    return ring::build_siphash_u32(contestant.scheme.points, servers);
  if (contestant.kind == Kind::siphash_modulo) return ring::build_siphash_modulo(servers);
  std::vector<ring::Member> members;
  for (const Node& node : nodes) {
    ring::Member& member = members.emplace_back();
    member.label = node.name;
    member.name = node.name;
    member.weight = node.weight;
  }
  return ring::build(contestant.scheme, members);
}

// Not of a table: its slots are no points on a circle.
std::optional<std::uint64_t> points_per_server(const Contestant& contestant, const ring::Ring& ring,
                                               std::size_t servers) {
  if (takes_points(contestant)) return contestant.scheme.points;
  if (!ring.layout().table.empty()) return std::nullopt;
  return (ring.points().size() + servers / 2) / servers;
}

Places::Place place_on(const Contestant& contestant, const BuiltRing& ring, const Nodes& nodes,
                       std::uint64_t keys) {
  if (contestant.kind != Kind::bounded)
    return [ring](std::string_view key) { return ring->owner(ring->hash(key)); };
  auto bounded = std::make_shared<BoundedLoads>(ring, nodes, contestant.balance, keys);
  return [bounded](std::string_view key) { return bounded->place(key); };
}

Result<Places> ring_places(const Contestant& contestant, const Change& change, std::uint64_t keys) {
  const Result<BuiltRing> before = build(contestant, change.before);
  if (!before) return before.error();
  const Result<BuiltRing> after = build(contestant, change.after);
  if (!after) return after.error();
  return Places{place_on(contestant, *before, change.before, keys),
                place_on(contestant, *after, change.after, keys),
                points_per_server(contestant, **after, change.after.size())};
}

Places slot_places(const Change& change) {
  const auto place_in = [](SlotTable table) {
    return [table = std::move(table)](std::string_view key) { return table[slot_of(key)]; };
  };
  const SlotTable before = even_slots(change.before);
  return {place_in(before), place_in(reshard(before, change)), std::nullopt};
}

Places rendezvous_places(const Change& change) {
  const auto place_among = [](const Nodes& nodes) {
    return [servers = Rendezvous(nodes)](std::string_view key) { return servers.owner(key); };
  };
  return {place_among(change.before), place_among(change.after), std::nullopt};
}

Places jump_places(const Change& change) {
  const auto place_in = [](const Nodes& nodes) {
    const auto buckets = static_cast<std::uint32_t>(nodes.size());
    return [buckets](std::string_view key) { return jump(key, buckets); };
  };
  return {place_in(change.before), place_in(change.after), std::nullopt};
}

}  // namespace

std::string_view name(const Contestant& contestant) noexcept {
  for (const Named& named : kBesideRings)
    if (named.kind == contestant.kind) return named.name;
  if (contestant.kind == Kind::siphash) return ring::to_string(ring::Placement::custom);
  if (contestant.kind == Kind::siphash_modulo) return ring::to_string(ring::Placement::modulo);
  return ring::to_string(contestant.scheme.placement);
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const ring::SchemeFacts& facts : ring::schemes()) all.push_back(facts.name);
  for (const Named& named : kBesideRings) all.push_back(named.name);
  return all;
}

std::optional<Contestant> contestant(std::string_view name) {
  for (const Named& named : kBesideRings)
    if (named.name == name)
      return of_placement(named.kind, ring::facts(ring::Placement::clockwise));
  for (const ring::SchemeFacts& facts : ring::schemes())
    if (facts.name == name) return of_placement(Kind::ring, facts);
  return std::nullopt;
}

bool takes_points(const Contestant& contestant) noexcept {
  if (contestant.kind == Kind::bounded || contestant.kind == Kind::siphash) return true;
  return contestant.kind == Kind::ring &&
         ring::facts(contestant.scheme.placement).default_points != 0;
}

Result<Places> places(const Contestant& contestant, const Change& change, std::uint64_t keys) {
  for (const Nodes& nodes : {change.before, change.after})
    if (const auto done = check_weights(contestant, nodes); !done) return done.error();
  switch (contestant.kind) {
    case Kind::ring:
    case Kind::bounded:
    case Kind::siphash:
    case Kind::siphash_modulo:
      return ring_places(contestant, change, keys);
    case Kind::slots:
      return slot_places(change);
    case Kind::rendezvous:
      return rendezvous_places(change);
    case Kind::jump:
      return jump_places(change);
  }
  return fail("no such kind of placement");
}

}  // namespace clockwise::simulate
