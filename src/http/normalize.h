// Two normal forms of a request target, for keys that should not depend on how it was written.
//
// Pure. Both append to `out` and read any octets, valid or not; at most twice the octets of the
// target are appended at any time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace clockwise::http {

// The path as nginx's $uri has it: percent-decoded once, then runs of slashes merged and the
// segments "." and ".." resolved, also where they were encoded (%2F, %2e). A ".." at the root stays
// at the root; a "%" that two hex digits do not follow stays as it is.
void append_decoded_path(std::string_view path, std::string& out);

// Whether a ".." of such a path leads above its root, where append_decoded_path() stays.
[[nodiscard]] bool leaves_root(std::string_view path) noexcept;

// Percent-encoding as RFC 3986 6.2.2 has it: escapes of unreserved octets are decoded, the others
// written in upper case; "%2F" stays apart from "/". A text with a malformed escape is appended as
// it is, for nobody knows what its server reads in it.
void append_normal_escapes(std::string_view text, std::string& out);

// Path and query with normal escapes; the parameters of the query sorted by all their octets, so
// that their order does not count, empty ones and those that match `ignore` left out. The "?" goes
// with the last parameter. An entry of `ignore` is a name in the form that append_normal_escapes()
// gives it, or PREFIX*. Dot segments and slashes stay.
void append_normal_uri(std::string_view uri, std::span<const std::string> ignore, std::string& out);

}  // namespace clockwise::http
