// Addresses and networks (see values.h).
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "config/values.h"

namespace clockwise::config {
namespace {

constexpr std::string_view kForms = "is not an address: host:port, [v6]:port or unix:/path";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The 4 or 16 bytes of a numeric address; empty when it is none.
std::string address_bytes(std::string_view text) {
  const std::string copy(text);
  std::array<char, 16> bytes{};
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) return {bytes.data(), 4};
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) return {bytes.data(), 16};
  return {};
}

bool is_host_label(std::string_view label) {
  const auto allowed = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  };
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), allowed);
}

bool is_host_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);  // fully qualified
  if (host.empty() || host.size() > 253) return false;
  for (;;) {
    const std::size_t dot = host.find('.');
    const std::string_view label = host.substr(0, dot);
    if (!is_host_label(label)) return false;
    // 10.0.0.256 and 10.1 are mistyped addresses, not names.
    if (dot == std::string_view::npos) return !std::all_of(label.begin(), label.end(), is_digit);
    host.remove_prefix(dot + 1);
  }
}

bool is_v6(std::string_view host) {
  const std::size_t zone = host.find('%');
  if (zone != std::string_view::npos) {
    if (!is_host_label(host.substr(zone + 1))) return false;
    host = host.substr(0, zone);
  }
  return address_bytes(host).size() == 16;
}

std::optional<std::uint16_t> port_of(std::string_view text, PortRule rule) {
  const std::uint64_t low = rule == PortRule::listening ? 0 : 1;
  const auto port = parse_integer(text, low, 65535);
  if (!port) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

Result<Address> unix_address(std::string_view text) {
  const std::string_view path = text.substr(std::string_view("unix:").size());
  if (!path.starts_with('/')) return fail("is not unix:/path with an absolute path");
  constexpr std::size_t longest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > longest) return fail(fmt::format("has a path longer than {} bytes", longest));
  return Address{.text = std::string(text), .host = {}, .port = 0, .path = std::string(path)};
}

// Why text without a usable `host:port` shape is refused.
std::string shape_fault(std::string_view text) {
  if (text.find("://") != std::string_view::npos)
    return "is a URL; an address is host:port, without http:// and path";
  if (address_bytes(text).size() == 16)
    return fmt::format("is not an address: write [{}]:PORT", text);
  if (text.find(':') == std::string_view::npos &&
      (is_host_name(text) || address_bytes(text).size() == 4))
    return "has no port: write host:port";
  return std::string(kForms);
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;
  bool bracketed = false;
};

std::optional<HostAndPort> split(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t close = bracketed ? text.find("]:") : std::string_view::npos;
  if (bracketed && close == std::string_view::npos) return std::nullopt;
  if (bracketed) return HostAndPort{text.substr(1, close - 1), text.substr(close + 2), true};
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos)
    return std::nullopt;
  return HostAndPort{text.substr(0, colon), text.substr(colon + 1), false};
}

}  // namespace

Result<Address> parse_address(std::string_view text, PortRule rule) {
  if (text.starts_with("unix:")) return unix_address(text);
  const std::optional<HostAndPort> parts = split(text);
  if (!parts) return fail(shape_fault(text));
  if (parts->host == "*" || parts->host.empty())
    return fail(rule == PortRule::listening
                    ? fmt::format("has no host: write 0.0.0.0:{0} or [::]:{0} for every interface",
                                  parts->port)
                    : "has no host: write host:port");
  if (text.find("://") != std::string_view::npos) return fail(shape_fault(text));
  const bool host_valid = parts->bracketed
                              ? is_v6(parts->host)
                              : address_bytes(parts->host).size() == 4 || is_host_name(parts->host);
  if (!host_valid) return fail(fmt::format("has no valid host: \"{}\"", parts->host));
  const std::optional<std::uint16_t> port = port_of(parts->port, rule);
  if (!port)
    return fail(fmt::format("has no valid port: a number from {} to 65535",
                            rule == PortRule::listening ? 0 : 1));
  return Address{
      .text = std::string(text), .host = std::string(parts->host), .port = *port, .path = {}};
}

Result<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string bytes = address_bytes(text.substr(0, slash));
  if (bytes.empty()) return fail("is not a network such as 10.0.0.0/8 or ::1/128");
  const std::uint64_t bits = bytes.size() * 8;
  if (slash == std::string_view::npos) return Network{fmt::format("{}/{}", text, bits)};
  const auto prefix = parse_integer(text.substr(slash + 1), 0, bits);
  if (!prefix) return fail(fmt::format("has no valid prefix length: 0 to {}", bits));
  for (std::uint64_t bit = *prefix; bit < bits; ++bit)
    if ((static_cast<unsigned char>(bytes[bit / 8]) >> (7 - bit % 8) & 1) != 0)
      return fail(fmt::format("has bits set beyond its first {}", *prefix));
  return Network{std::string(text)};
}

bool looks_like_address(std::string_view text) {
  if (!address_bytes(text).empty()) return true;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return false;
  const std::string_view port = text.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), is_digit) && port.size() <= 5;
}

}  // namespace clockwise::config
