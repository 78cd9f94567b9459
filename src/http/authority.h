// The host and port of a Host field or of an absolute target (RFC 9110 4.2, RFC 3986 3.2).
#pragma once

#include <string_view>

namespace clockwise::http {

// True for `uri-host [ ":" port ]` with a host that is not empty: a registered name, an IPv4
// address or a bracketed IPv6 address, and a port of 0 to 65535 (an empty one is valid syntax).
// No user information, no zone, no "," although RFC 3986 allows it: other readers split there.
[[nodiscard]] bool is_authority(std::string_view text) noexcept;

// What stands before the colon of the port, brackets included; all of it where there is no port.
// REQUIRES: an authority, or nothing.
[[nodiscard]] std::string_view host_of(std::string_view authority) noexcept;

// The same without a dot at its end, for what is one site with it and without it.
[[nodiscard]] std::string_view site_of(std::string_view authority) noexcept;

// Of what stands behind host_of() (":80" and the like, or nothing): whether it is the port that the
// scheme has anyway. An empty port is (RFC 3986 6.2.3).
[[nodiscard]] bool is_default_port(std::string_view port, std::string_view scheme) noexcept;

}  // namespace clockwise::http
