// Content negotiation for the few answers the proxy writes itself.
#pragma once

#include <string_view>

namespace clockwise::http {

// True when an Accept value names application/json and wants it no less than text/plain
// (RFC 9110 12.5.1; a wildcard alone does not ask for JSON).
[[nodiscard]] bool prefers_json(std::string_view accept) noexcept;

}  // namespace clockwise::http
