#include "cache/purge.h"

#include <algorithm>

#include "http/octets.h"

namespace clockwise::cache {
namespace {

// The authority in a key of the form scheme://authority/…; empty where it has another.
std::string_view authority_of(std::string_view key) noexcept {
  const std::size_t scheme = key.find(':');
  if (!http::is_token(key.substr(0, scheme))) return {};
  key.remove_prefix(std::min(scheme, key.size()));
  if (!key.starts_with("://")) return {};
  key.remove_prefix(3);
  return key.substr(0, key.find('/'));
}

bool is_host(std::string_view authority, std::string_view wanted) noexcept {
  if (wanted.empty()) return false;
  if (http::same_ignoring_case(authority, wanted)) return true;
  const std::size_t port = authority.rfind(':');
  if (port == std::string_view::npos || authority.ends_with(']')) return false;
  return http::same_ignoring_case(authority.substr(0, port), wanted);
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
      return is_host(authority_of(key), text);
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
