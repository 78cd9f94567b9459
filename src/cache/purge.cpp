#include "cache/purge.h"

#include "http/authority.h"
#include "http/octets.h"

namespace clockwise::cache {
namespace {

// Whether a key of the form scheme://authority/… is of that host: on its port, or, where it names
// none, on any.
bool is_of_host(std::string_view key, std::string_view wanted) noexcept {
  const std::string_view scheme = key.substr(0, key.find(':'));
  if (wanted.empty() || !http::is_token(scheme)) return false;
  key.remove_prefix(scheme.size());
  if (!key.starts_with("://")) return false;
  key.remove_prefix(3);
  const std::string_view authority = key.substr(0, key.find('/'));
  const std::string_view host = http::host_of(authority);
  const std::string_view wanted_host = http::host_of(wanted);
  if (!http::same_ignoring_case(host, wanted_host)) return false;
  const std::string_view port = authority.substr(host.size());
  const std::string_view wanted_port = wanted.substr(wanted_host.size());
  return wanted_port.empty() || port == wanted_port ||
         (http::is_default_port(port, scheme) && http::is_default_port(wanted_port, scheme));
}

bool has_tag(std::string_view tags, std::string_view wanted) noexcept {
  return !wanted.empty() &&
         !http::each_piece(tags, ' ', [&](std::string_view tag) { return tag != wanted; });
}

}  // namespace

bool PurgeRule::names_key(std::string_view key) const noexcept {
  switch (scope) {
    case PurgeScope::url:
      return key == text;
    case PurgeScope::prefix:
      return key.starts_with(text);
    case PurgeScope::host:
      return is_of_host(key, text);
    case PurgeScope::all:
      return true;
    case PurgeScope::tag:
      break;
  }
  return false;
}

bool PurgeRule::names(std::string_view key, std::string_view tags) const noexcept {
  return scope == PurgeScope::tag ? has_tag(tags, text) : names_key(key);
}

}  // namespace clockwise::cache
