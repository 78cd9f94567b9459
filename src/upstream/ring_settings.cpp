#include "upstream/ring_settings.h"

#include <array>
#include <boost/json/array.hpp>
#include <string_view>

namespace clockwise::upstream {

namespace {

namespace json = boost::json;
using ring::Scheme;

json::value hash_of(const Scheme& scheme) {
  if (!scheme.hash.empty()) return json::value(scheme.hash);
  const auto hashes = ring::facts(scheme.placement).hashes;
  return hashes.empty() ? json::value("") : json::value(hashes.front());
}

struct Parameter {
  std::string_view name;
  json::value (*get)(const Scheme&);
};

constexpr std::array<Parameter, 11> kParameters{{
    {"points", [](const Scheme& s) { return json::value(s.points); }},
    {"hash", hash_of},
    {"key_hash", hash_of},
    {"form", [](const Scheme& s) { return json::value(s.form); }},
    {"distribution", [](const Scheme& s) { return json::value(s.distribution); }},
    // A named hash is taken as it is unless the avalanche is asked for.
    {"avalanche",
     [](const Scheme& s) { return json::value(s.avalanche.value_or(s.hash.empty())); }},
    {"min_size", [](const Scheme& s) { return json::value(s.min_size); }},
    {"max_size", [](const Scheme& s) { return json::value(s.max_size); }},
    {"table", [](const Scheme& s) { return json::value(s.table); }},
    {"label", [](const Scheme& s) { return json::value(s.label); }},
    {"bits", [](const Scheme& s) { return json::value(s.bits); }},
}};

json::value parameter(const Scheme& scheme, std::string_view name) {
  for (const Parameter& known : kParameters)
    if (known.name == name) return known.get(scheme);
  return nullptr;
}

}  // namespace

json::object ring_settings(const config::Ring& ring) {
  const ring::SchemeFacts& facts = ring::facts(ring.scheme.placement);
  json::object settings{{"scheme", facts.name}};
  for (const std::string_view name : facts.parameters)
    settings[name] = parameter(ring.scheme, name);
  settings["hash_tag"] = ring.scheme.hash_tag;
  settings["key"] = ring.key;
  settings["key_ignore"] = json::array(ring.key_ignore.begin(), ring.key_ignore.end());
  // Of memcached servers.
  if (!ring.scheme.key_namespace.empty()) settings["namespace"] = ring.scheme.key_namespace;
  if (ring.replicas > 1) settings["replicas"] = ring.replicas;
  return settings;
}

}  // namespace clockwise::upstream
