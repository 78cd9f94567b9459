#include "proxy/routes.h"

#include "http/authority.h"
#include "http/octets.h"

namespace clockwise::proxy {
namespace {

bool matches_host(std::string_view wanted, std::string_view host) noexcept {
  if (!wanted.starts_with("*.")) return http::same_ignoring_case(host, wanted);
  const std::string_view end = wanted.substr(1);
  return host.size() > end.size() &&
         http::same_ignoring_case(host.substr(host.size() - end.size()), end);
}

}  // namespace

std::optional<std::size_t> first_match(const std::vector<config::Route>& routes,
                                       const http::RequestHead& head) noexcept {
  const std::string_view host = http::site_of(head.authority);
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const config::Route& route = routes[i];
    if (!route.host.empty() && !matches_host(route.host, host)) continue;
    // A prefix has no "?", so that it never reaches into the query.
    if (head.uri.starts_with(route.path_prefix)) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> first_match(const std::vector<config::Route>& routes,
                                       std::string_view key) noexcept {
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (key.starts_with(routes[i].key_prefix)) return i;
  return std::nullopt;
}

}  // namespace clockwise::proxy
