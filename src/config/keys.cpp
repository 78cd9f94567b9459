#include "config/keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/key_template.h"
#include "http/octets.h"

namespace clockwise::config {
namespace {

constexpr std::string_view kNormalized = "{uri:normalized}";

// False, with a problem, where there is no template.
bool read_template(const Field& field, std::string& key) {
  if (field.node().kind == Kind::map) {
    field.problem("is a map; write a template in quotes: \"{uri}\"");
    return false;
  }
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return false;
  const auto parsed = http::KeyTemplate::parse(scalar->text);
  if (!parsed) {
    field.error(parsed.error().message);
    return false;
  }
  key = scalar->text.empty() ? "{uri}" : scalar->text;
  return true;
}

// Names of headers may be in any case.
bool holds(std::string_view key, std::string_view lower_case) {
  return !std::ranges::search(key, lower_case, {}, http::lower).empty();
}

}  // namespace

void read_key(const Field& field, std::string& key) {
  if (!read_template(field, key) || key.find('{') != std::string::npos) return;
  field.warn_at(field.place(), fmt::format("{} is the same for every request: one server would "
                                           "get them all",
                                           quoted(key)));
}

void read_cache_key(const Field& field, std::string& key) {
  if (!read_template(field, key)) return;
  if (!holds(key, "{uri") && !holds(key, "{path")) {
    field.warn_at(field.place(), fmt::format("{} has neither {{uri}} nor {{path}}: different pages "
                                             "would have one answer",
                                             quoted(key)));
  }
  if (!holds(key, "{host}") && !holds(key, "{header:host}")) {
    field.warn_at(field.place(), fmt::format("{} has no {{host}}: the page of one host would be "
                                             "given for that of another",
                                             quoted(key)));
  }
}

void read_key_ignore(const Field& field, const std::string& key, std::vector<std::string>& ignore) {
  const std::optional<std::vector<Field>> items = field.items();
  if (!items) return;
  for (const Field& item : *items) {
    const std::optional<Scalar> scalar = item.scalar();
    if (!scalar) continue;
    const auto parsed = http::KeyTemplate::parse(kNormalized, {scalar->text});
    if (parsed)
      ignore.push_back(scalar->text);
    else
      item.error(parsed.error().message);
  }
  std::ranges::sort(ignore);
  ignore.erase(std::unique(ignore.begin(), ignore.end()), ignore.end());
  if (items->empty() || key.find(kNormalized) != std::string::npos) return;
  field.warn_at(field.place(),
                fmt::format("has no effect: the key {} has no {}", quoted(key), kNormalized));
  ignore.clear();
}

}  // namespace clockwise::config
