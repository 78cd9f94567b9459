// The models of the sources against the owners that the peers themselves gave
// (tests/golden/placement): what `import --prove` compares with must be right on its own.
#include "import/model.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <numeric>
#include <sstream>

namespace clockwise::importer {
namespace {

namespace json = boost::json;

json::object golden(const std::string& name) {
  std::ifstream file(CLOCKWISE_SOURCE_DIR "/tests/golden/placement/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str()).as_object();
}

template <class T>
T value_or(const json::object& object, std::string_view key, T otherwise) {
  const json::value* found = object.if_contains(key);
  return found != nullptr ? json::value_to<T>(*found) : otherwise;
}

std::vector<Server> servers_of(const json::object& set) {
  std::vector<Server> servers;
  for (const json::value& value : set.at("servers").as_array()) {
    const json::object& one = value.as_object();
    const auto name = json::value_to<std::string>(one.at("name"));
    servers.push_back({.label = value_or(one, "label", name),
                       .weight = value_or(one, "weight", 1.0),
                       .id = value_or(one, "id", 0u),
                       .down = value_or(one, "down", false)});
  }
  return servers;
}

ring::Scheme scheme_of(const json::object& params) {
  ring::Scheme scheme;
  scheme.hash = value_or<std::string>(params, "hash", "");
  scheme.distribution = value_or<std::string>(params, "distribution", "ketama");
  scheme.hash_tag = value_or<std::string>(params, "hash_tag", "");
  scheme.avalanche = scheme.hash.empty() || value_or(params, "avalanche", false);
  scheme.min_size = value_or(params, "min_ring", scheme.min_size);
  scheme.max_size = value_or(params, "max_ring", scheme.max_size);
  scheme.table = value_or(params, "table_size", scheme.table);
  return scheme;
}

Model model_of(const std::string& file, const json::object& set, const json::object& params) {
  const std::vector<Server> servers = servers_of(set);
  const ring::Scheme scheme = scheme_of(params);
  if (file == "nginx-consistent") return nginx_model(servers);
  if (file == "nginx-hash") return nginx_hash_model(servers);
  if (file == "twemproxy") return twemproxy_model(servers, scheme);
  if (file == "envoy-ring-hash") return envoy_model(servers, scheme);
  if (file == "envoy-maglev") return maglev_model(servers, scheme);
  std::vector<std::size_t> kept(servers.size());
  std::iota(kept.begin(), kept.end(), 0);
  const bool cut = !value_or(params, "whole", false) && !params.contains("balance");
  return haproxy_model(servers, kept, scheme, cut);
}

class ModelVectors : public testing::TestWithParam<const char*> {};

TEST_P(ModelVectors, AreThoseOfThePeer) {
  const json::object file = golden(GetParam());
  static const json::object kNone;
  std::size_t compared = 0;
  for (const json::value& value : file.at("sets").as_array()) {
    const json::object& set = value.as_object();
    if (set.contains("grid") || value_or(set, "keys_are_hashes", false)) continue;
    const json::value* params = set.if_contains("params");
    const Model model = model_of(GetParam(), set, params ? params->as_object() : kNone);
    const json::value* own = set.if_contains("keys");
    const json::array& keys = (own != nullptr ? *own : file.at("keys")).as_array();
    for (std::size_t i = 0; i < keys.size(); ++i, ++compared) {
      const auto key = json::value_to<std::string>(keys[i]);
      ASSERT_EQ(model(key), json::value_to<std::size_t>(set.at("owner").at(i)))
          << json::serialize(set.at("id")) << " " << key;
    }
  }
  EXPECT_GT(compared, 100u);
}

INSTANTIATE_TEST_SUITE_P(Import, ModelVectors,
                         testing::Values("nginx-consistent", "nginx-hash", "twemproxy",
                                         "haproxy-consistent", "envoy-ring-hash", "envoy-maglev"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace clockwise::importer
