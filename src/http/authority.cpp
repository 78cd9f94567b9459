#include "http/authority.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "http/octets.h"

namespace clockwise::http {
namespace {

bool is_port(std::string_view text) {
  unsigned port = 0;
  for (const char octet : text) {
    if (!is(octet, kDigit)) return false;
    port = port * 10 + static_cast<unsigned>(octet - '0');
    if (port > 65535) return false;
  }
  return true;
}

bool is_ipv6(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size() || text.find('\0') != std::string_view::npos) return false;
  std::memcpy(copy.data(), text.data(), text.size());
  in6_addr address;
  return inet_pton(AF_INET6, copy.data(), &address) == 1;
}

// Octets of `text` that form a registered name.
std::size_t reg_name_size(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (is(text[i], kRegName)) {
      ++i;
    } else if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
               hex_value(text[i + 2]) >= 0) {
      i += 3;
    } else {
      break;
    }
  }
  return i;
}

}  // namespace

bool is_authority(std::string_view text) noexcept {
  std::size_t host_size = 0;
  if (text.starts_with('[')) {
    const std::size_t closing = text.find(']');
    if (closing == std::string_view::npos || !is_ipv6(text.substr(1, closing - 1))) return false;
    host_size = closing + 1;
  } else {
    host_size = reg_name_size(text);
  }
  if (host_size == 0) return false;
  if (host_size == text.size()) return true;
  return text[host_size] == ':' && is_port(text.substr(host_size + 1));
}

std::string_view host_of(std::string_view authority) noexcept {
  const std::size_t closing = authority.starts_with('[') ? authority.find(']') : 0;
  if (closing == std::string_view::npos) return authority;
  return authority.substr(0, authority.find(':', closing));
}

bool is_default_port(std::string_view port, std::string_view scheme) noexcept {
  return port.empty() || port == ":" || (port == ":80" && scheme == "http") ||
         (port == ":443" && scheme == "https");
}

std::string_view site_of(std::string_view authority) noexcept {
  std::string_view host = host_of(authority);
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

}  // namespace clockwise::http
