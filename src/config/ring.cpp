// The ring of a pool (see ring.h).
#include "config/ring.h"

#include <array>

#include "config/key_template.h"

namespace clockwise::config {
namespace {

// Parameters of the schemes above.
constexpr std::array<std::string_view, 10> kSchemeParameters{
    "key_hash", "hash",     "form",  "distribution", "avalanche",
    "min_size", "max_size", "table", "label",        "bits"};

void read_key(const Field& field, std::string& key) {
  if (field.node().kind == Kind::map) {
    field.problem("is a map; write a template in quotes: \"{uri}\"");
    return;
  }
  value(key, parse_key_template)(field);
}

void read_scheme(const Field& field, ring::Placement& placement) {
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  std::vector<std::string_view> words;
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    if (scheme.name == scalar->text) placement = scheme.placement;
    words.push_back(scheme.name);
  }
  const bool known = ring::to_string(placement) == scalar->text;
  if (!known) report_choice(field, scalar->text, false, words);
}

}  // namespace

std::optional<Field> read_ring(const Field& field, Ring& ring) {
  std::optional<Field> points;
  MapReader map(field);
  map.read("scheme", [&](const Field& f) { read_scheme(f, ring.scheme.placement); });
  map.read("points", [&](const Field& f) {
    points = f;
    integer(ring.scheme.points, 1, kMaxPoints)(f);
  });
  map.read("key", [&](const Field& f) { read_key(f, ring.key); });
  map.read("key_ignore", only_empty_list);
  map.read("hash_tag", only_empty_text);
  map.read("replicas", only(std::uint64_t{1}));
  map.read("bounded_load", only_off);
  map.read("hot_keys", only_off);
  for (const std::string_view parameter : kSchemeParameters) map.refuse(parameter);
  map.finish();
  return points;
}

}  // namespace clockwise::config
