#include "cache/related.h"

#include "http/octets.h"

namespace clockwise::cache {
namespace {

constexpr std::string_view kScheme = "http:";
constexpr std::string_view kDefaultPort = ":80";

std::string_view without_default_port(std::string_view authority) {
  if (authority.ends_with(kDefaultPort)) authority.remove_suffix(kDefaultPort.size());
  return authority;
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
    if (!http::same_ignoring_case(without_default_port(reference.substr(0, end)),
                                  without_default_port(authority)))
      return std::nullopt;
    reference.remove_prefix(end);
    return reference.starts_with('/') ? std::string(reference) : "/" + std::string(reference);
  }
  if (reference.starts_with('/')) return std::string(reference);
  // A scheme of another kind.
  const std::size_t colon = reference.find(':');
  if (colon < reference.find_first_of("/?")) return std::nullopt;
  const std::string_view path = uri.substr(0, uri.find('?'));
  if (reference.empty()) return std::string(uri);
  if (reference.starts_with('?')) return std::string(path).append(reference);
  return std::string(path.substr(0, path.rfind('/') + 1)).append(reference);
}

}  // namespace clockwise::cache
