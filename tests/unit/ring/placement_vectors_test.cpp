// Every scheme against the owners that its peer gave: tests/golden/placement/*.json, one file for
// each peer. `peer` and `how` in a file say what was run, docs/placement.md gives the recipes.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "ring/literature.h"
#include "ring/scheme.h"

namespace clockwise::ring {
namespace {

namespace json = boost::json;

json::value golden(const std::string& name) {
  std::ifstream file(CLOCKWISE_SOURCE_DIR "/tests/golden/placement/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

std::string text_of(const json::value& value) { return json::value_to<std::string>(value); }

// A member of a set, or of its `params`, that may be absent.
template <class T>
T value_or(const json::object& object, std::string_view key, T otherwise) {
  const json::value* found = object.if_contains(key);
  return found ? json::value_to<T>(*found) : otherwise;
}

Scheme scheme_of(const std::string& file_scheme, const json::object& params) {
  static const std::map<std::string, Scheme> kSchemes{
      {"proposed-xxh64", {.placement = Placement::clockwise}},
      {"nginx-consistent", {.placement = Placement::nginx}},
      {"nginx-hash", {.placement = Placement::nginx_hash}},
      {"libketama", {.placement = Placement::libketama}},
      {"libmemcached-ketama-weighted", {.placement = Placement::ketama}},
      {"libmemcached-ketama", {.placement = Placement::libmemcached}},
      {"libmemcached-ketama-spy", {.placement = Placement::spymemcached, .form = "libmemcached"}},
      {"spymemcached-ketama", {.placement = Placement::spymemcached}},
      {"twemproxy", {.placement = Placement::twemproxy}},
      {"haproxy-consistent", {.placement = Placement::haproxy}},
      {"varnish-shard", {.placement = Placement::varnish, .points = 67}},
      {"envoy-ring-hash", {.placement = Placement::envoy}},
      {"envoy-maglev", {.placement = Placement::maglev}},
      {"seed-id-sha1", {.placement = Placement::custom, .hash = "sha1"}},
      {"seed-ja-sha256",
       {.placement = Placement::custom, .hash = "sha256", .label = "node:{name}:{i}", .bits = 256}},
  };
  Scheme scheme = kSchemes.at(file_scheme);
  const auto hash = value_or<std::string>(params, "hash", "default");
  if (hash != "default") {
    scheme.hash = hash;
    if (scheme.placement == Placement::haproxy)
      scheme.avalanche = value_or(params, "avalanche", false);
  }
  scheme.distribution = value_or(params, "distribution", scheme.distribution);
  scheme.hash_tag = value_or(params, "hash_tag", scheme.hash_tag);
  scheme.points = value_or(params, "vnodes", value_or(params, "replicas", scheme.points));
  scheme.min_size = value_or(params, "min_ring", scheme.min_size);
  scheme.max_size = value_or(params, "max_ring", scheme.max_size);
  scheme.table = value_or(params, "table_size", scheme.table);
  return scheme;
}

std::vector<Member> members_of(const json::array& servers) {
  std::vector<Member> members;
  for (const json::value& server : servers) {
    const json::object& one = server.as_object();
    const std::string name = text_of(one.at("name"));
    members.push_back({.label = value_or(one, "label", name),
                       .weight = value_or(one, "weight", 1.0),
                       .id = value_or(one, "id", 0u),
                       .live = !value_or(one, "down", false)});
  }
  return members;
}

std::shared_ptr<const Ring> ring_of(const std::string& file_scheme, const json::object& set) {
  static const json::object kNone;
  const json::value* found = set.if_contains("params");
  const json::object& params = found ? found->as_object() : kNone;
  const json::array& servers = set.at("servers").as_array();
  if (file_scheme == "seed-th-siphash13")
    return build_siphash_u32(json::value_to<std::uint32_t>(params.at("vnodes")),
                             static_cast<std::uint32_t>(servers.size()));
  return build(scheme_of(file_scheme, params), members_of(servers)).value();
}

Position position_of(const Ring& ring, const json::object& set, const std::string& key) {
  if (!value_or(set, "keys_are_hashes", false)) return ring.hash(key);
  Position position = 0;
  std::from_chars(key.data(), key.data() + key.size(), position);
  return position;
}

// The part of the key that the peer was told to hash.
std::string hashed_part(const std::string& file_scheme, const json::object& set,
                        const std::string& key) {
  const json::value* params = set.if_contains("params");
  const bool whole = params && (value_or(params->as_object(), "whole", false) ||
                                params->as_object().contains("balance"));
  return file_scheme == "haproxy-consistent" && !whole ? key.substr(0, key.find('?')) : key;
}

// How many of a grid of positions each server owns.
void grade_counts(const Ring& ring, const json::object& set) {
  const auto grid = json::value_to<std::uint64_t>(set.at("grid"));
  std::vector<std::uint64_t> counts(set.at("servers").as_array().size());
  for (std::uint64_t i = 0; i < grid; ++i) ++counts[ring.owner(i * (~Position{0} / grid))];
  EXPECT_EQ(counts, json::value_to<std::vector<std::uint64_t>>(set.at("counts")));
}

class PlacementVectors : public testing::TestWithParam<const char*> {};

TEST_P(PlacementVectors, EverySetIsRight) {
  const json::value file = golden(std::string(GetParam()) + ".json");
  const std::string scheme = text_of(file.at("scheme"));
  ASSERT_FALSE(file.at("sets").as_array().empty());
  for (const json::value& value : file.at("sets").as_array()) {
    const json::object& set = value.as_object();
    SCOPED_TRACE(text_of(set.at("id")));
    const auto ring = ring_of(scheme, set);
    if (set.contains("grid")) {
      grade_counts(*ring, set);
      continue;
    }
    const json::array& keys = (set.contains("keys") ? set.at("keys") : file.at("keys")).as_array();
    const json::array& owners = set.at("owner").as_array();
    ASSERT_EQ(keys.size(), owners.size());
    ASSERT_FALSE(keys.empty());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string key = hashed_part(scheme, set, text_of(keys[i]));
      EXPECT_EQ(ring->owner(position_of(*ring, set, key)), json::value_to<ServerIndex>(owners[i]))
          << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Peers, PlacementVectors,
                         testing::Values("envoy-maglev", "envoy-ring-hash", "haproxy-consistent",
                                         "libketama", "libmemcached-ketama",
                                         "libmemcached-ketama-spy", "libmemcached-ketama-weighted",
                                         "nginx-consistent", "nginx-hash", "proposed-xxh64",
                                         "seed-id-sha1", "seed-ja-sha256", "seed-th-siphash13",
                                         "spymemcached-ketama", "twemproxy", "varnish-shard"),
                         [](const auto& peer) {
                           std::string name = peer.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace clockwise::ring
