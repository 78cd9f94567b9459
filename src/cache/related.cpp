#include "cache/related.h"

#include <algorithm>

#include "http/octets.h"

namespace clockwise::cache {
namespace {

constexpr std::string_view kScheme = "http:";
constexpr std::string_view kDefaultPort = ":80";

std::string_view without_default_port(std::string_view authority) {
  for (const std::string_view port : {kDefaultPort, std::string_view(":")}) {
    if (!authority.ends_with(port)) continue;
    authority.remove_suffix(port.size());
    break;
  }
  return authority;
}

// RFC 3986 5.2.4.
std::string without_dot_segments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::string_view segment = path.substr(0, std::min(path.find('/', 1), path.size()));
    path.remove_prefix(segment.size());
    const bool up = segment == "/..";
    if (!up && segment != "/.") {
      out.append(segment);
      continue;
    }
    if (up) out.resize(std::min(out.rfind('/'), out.size()));
    if (path.empty()) out += '/';
  }
  return out;
}

// Of an absolute path with or without a query.
std::string resolved(std::string_view uri) {
  const std::size_t query = std::min(uri.find('?'), uri.size());
  return without_dot_segments(uri.substr(0, query)).append(uri.substr(query));
}

// What `reference`, which names no authority, is in the place of `uri` (RFC 3986 5.2.2).
std::string resolved(std::string_view reference, std::string_view uri) {
  if (reference.starts_with('/')) return resolved(reference);
  const std::string_view path = uri.substr(0, uri.find('?'));
  if (reference.empty()) return std::string(uri);
  const std::string_view kept =
      reference.starts_with('?') ? path : path.substr(0, path.rfind('/') + 1);
  return resolved((kept.starts_with('/') ? std::string(kept) : "/").append(reference));
}

}  // namespace

std::optional<std::string> same_origin_uri(std::string_view reference, std::string_view authority,
                                           std::string_view uri) {
  reference = reference.substr(0, reference.find('#'));
  if (reference.size() >= kScheme.size() &&
      http::same_ignoring_case(reference.substr(0, kScheme.size()), kScheme)) {
    reference.remove_prefix(kScheme.size());
    if (!reference.starts_with("//")) return std::nullopt;
  }
  if (reference.starts_with("//")) {
    reference.remove_prefix(2);
    const std::size_t end = std::min(reference.find_first_of("/?"), reference.size());
    const std::string_view named = reference.substr(0, end);
    if (named.empty() ||
        !http::same_ignoring_case(without_default_port(named), without_default_port(authority)))
      return std::nullopt;
    reference.remove_prefix(end);
    return resolved(reference.starts_with('/') ? reference : "/" + std::string(reference));
  }
  // A scheme of another kind.
  if (reference.find(':') < reference.find_first_of("/?")) return std::nullopt;
  return resolved(reference, uri);
}

}  // namespace clockwise::cache
