#include "admin/purge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>

#include "admin/json_body.h"
#include "base/result.h"
#include "config/field.h"
#include "config/values.h"
#include "http/authority.h"
#include "http/octets.h"
#include "metrics/catalogue.h"

namespace clockwise::admin {

namespace {

namespace json = boost::json;
using cache::PurgeScope;
using config::valid;
using metrics::kPurgeScopes;

constexpr std::string_view kShape =
    R"(wanted is an object such as {"url": "http://host/path"}, {"tag": "news"} or {"all": true})";

// No key is longer, nor anything else that a stored answer is known by.
constexpr std::size_t kMostText = 0xffff;

// The one member that says what is purged.
Result<PurgeScope> scope_of(const json::object& members) {
  std::optional<PurgeScope> scope;
  for (const auto& [name, value] : members) {
    if (name == "soft") continue;
    const auto known = std::ranges::find(kPurgeScopes, std::string_view(name));
    if (known == kPurgeScopes.end())
      return fail(fmt::format("unknown field {}; there are: {}, soft", config::quoted(name),
                              fmt::join(kPurgeScopes, ", ")));
    if (scope)
      return fail(fmt::format("a purge takes one of {}, and no two of them",
                              fmt::join(kPurgeScopes, ", ")));
    scope = static_cast<PurgeScope>(known - kPurgeScopes.begin());
  }
  if (!scope) return fail(fmt::format("nothing to purge; {}", kShape));
  return *scope;
}

Result<bool> read_soft(const json::object& members) {
  const json::value* soft = members.if_contains("soft");
  if (soft == nullptr) return false;
  if (soft->is_bool()) return soft->get_bool();
  return fail(fmt::format("soft: {} is neither true nor false", shown(*soft)));
}

Result<std::string> read_text(const json::value& value) {
  if (!value.is_string()) return fail(fmt::format("{} is no text", shown(value)));
  const json::string& text = value.get_string();
  if (text.empty()) return fail("is empty");
  if (text.size() > kMostText)
    return fail(fmt::format("is longer than anything that is stored, {} octets", kMostText));
  return valid(std::string(text));
}

// The first placeholder of the key that stands for something beside the target; empty: none does.
std::string_view beside_target(std::string_view key) {
  while (true) {
    key.remove_prefix(std::min(key.find('{'), key.size()));
    const std::string_view placeholder = key.substr(0, key.find('}') + 1);
    if (placeholder.empty()) return {};
    const bool host = http::same_ignoring_case(placeholder, "{header:host}");
    if (placeholder.starts_with("{cookie:") || placeholder == "{client_ip}" ||
        (placeholder.starts_with("{header:") && !host))
      return placeholder;
    key.remove_prefix(placeholder.size());
  }
}

// As a request for it would be read: without a fragment, which no request has.
Result<std::string> key_of(std::string_view url, const upstream::Cache& cache) {
  if (const auto placeholder = beside_target(cache.config.key); !placeholder.empty())
    return fail(
        fmt::format("the key of cache {} has {}, which no URL tells; purge by another field",
                    cache.config.name, placeholder));
  const auto no_url = [&] {
    return fail(fmt::format("{} is no URL such as http://host/path", config::quoted(url)));
  };
  const std::string_view whole = url.substr(0, url.find('#'));
  const std::size_t colon = whole.find("://");
  if (colon == std::string_view::npos) return no_url();
  const bool secure = http::same_ignoring_case(whole.substr(0, colon), "https");
  if (!secure && !http::same_ignoring_case(whole.substr(0, colon), "http")) return no_url();

  const std::string_view rest = whole.substr(colon + 3);
  const std::size_t host_size = std::min(rest.find_first_of("/?"), rest.size());
  std::string uri(rest.substr(host_size));
  if (!uri.starts_with('/')) uri.insert(0, 1, '/');
  if (!http::is_authority(rest.substr(0, host_size)) || !http::all(uri, http::kTarget))
    return no_url();
  const http::KeyParts parts{.uri = uri,
                             .host = rest.substr(0, host_size),
                             .scheme = secure ? "https" : "http",
                             .method = "GET"};
  std::string scratch;
  return valid(std::string(cache.key.render(parts, scratch)));
}

Result<std::string> host_of(std::string text, const upstream::Cache& cache) {
  if (!http::is_authority(text))
    return fail(fmt::format("{} is no host such as www.example.com or www.example.com:8080",
                            config::quoted(text)));
  const cache::PurgeRule rule{.scope = PurgeScope::host, .text = text};
  for (const std::string_view scheme : {"http", "https"}) {
    std::string scratch;
    if (rule.names_key(cache.key.render({.uri = "/", .host = text, .scheme = scheme}, scratch)))
      return valid(std::move(text));
  }
  return fail(
      fmt::format("the keys of cache {} are not of the form scheme://host/; purge by "
                  "another field",
                  cache.config.name));
}

Result<std::string> tag_of(std::string text) {
  constexpr std::string_view kBetweenTags = " \t,";
  if (text.find_first_of(kBetweenTags) == std::string::npos) return valid(std::move(text));
  return fail(fmt::format("{} is no single tag", config::quoted(text)));
}

// What the rule says, by the value of the member that names its scope.
Result<std::string> rule_text(PurgeScope scope, const json::value& value,
                              const upstream::Cache& cache) {
  if (scope == PurgeScope::all) {
    if (value.is_bool() && value.get_bool()) return valid({});
    return fail(fmt::format("{} is not true", shown(value)));
  }
  auto text = read_text(value);
  if (!text || scope == PurgeScope::prefix) return text;
  if (scope == PurgeScope::url) return key_of(*text, cache);
  return scope == PurgeScope::host ? host_of(std::move(*text), cache) : tag_of(std::move(*text));
}

}  // namespace

std::variant<cache::PurgeRule, BadPurge> read_purge(std::string_view body,
                                                    const upstream::Cache& cache) {
  const auto parsed = parse_body(body, kShape);
  if (!parsed) return BadPurge{parsed.error().message, {}};
  if (!parsed->is_object()) return BadPurge{fmt::format("nothing to purge; {}", kShape), {}};
  const json::object& members = parsed->get_object();
  const auto scope = scope_of(members);
  if (!scope) return BadPurge{scope.error().message, {}};
  const auto soft = read_soft(members);
  if (!soft) return BadPurge{soft.error().message, *scope};

  const std::string_view name = kPurgeScopes[static_cast<std::size_t>(*scope)];
  auto text = rule_text(*scope, members.at(name), cache);
  if (!text) return BadPurge{fmt::format("{}: {}", name, text.error().message), *scope};
  return cache::PurgeRule{.scope = *scope, .text = std::move(*text), .soft = *soft};
}

}  // namespace clockwise::admin
