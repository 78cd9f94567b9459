#include "config/keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/key_template.h"

namespace clockwise::config {
namespace {

constexpr std::string_view kNormalized = "{uri:normalized}";

}  // namespace

void read_key(const Field& field, std::string& key) {
  if (field.node().kind == Kind::map) {
    field.problem("is a map; write a template in quotes: \"{uri}\"");
    return;
  }
  const std::optional<Scalar> scalar = field.scalar();
  if (!scalar) return;
  const auto parsed = http::KeyTemplate::parse(scalar->text);
  if (!parsed) return field.error(parsed.error().message);
  key = scalar->text.empty() ? "{uri}" : scalar->text;
  if (key.find('{') == std::string::npos) {
    field.warn_at(field.place(), fmt::format("{} is the same for every request: one server would "
                                             "get them all",
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
