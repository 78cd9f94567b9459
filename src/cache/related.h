// What else an answer to an unsafe request makes doubtful: the URIs of Location and
// Content-Location, as far as they are of the same origin (RFC 9111 section 4.4). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clockwise::cache {

// Path and query of what `reference` names (RFC 3986 4.1), seen from a request for `uri` at
// `authority`; nothing when that is another origin or no reference to http.
[[nodiscard]] std::optional<std::string> same_origin_uri(std::string_view reference,
                                                         std::string_view authority,
                                                         std::string_view uri);

}  // namespace clockwise::cache
