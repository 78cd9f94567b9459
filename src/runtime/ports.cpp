#include "runtime/ports.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace clockwise::runtime {
namespace {

using boost::asio::ip::tcp;

std::string cause_of(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the port is in use";
    case EACCES:
      return "no permission (ports below 1024 need root or CAP_NET_BIND_SERVICE)";
    case EADDRNOTAVAIL:
      return "this machine has no such address";
    default:
      return std::strerror(error);
  }
}

// A bound socket, or minus the error number.
int bind_socket(const upstream::Endpoint& endpoint, int option) {
  const int descriptor =
      ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (descriptor < 0) return -errno;
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, option, &on, sizeof on);
  // As the workers' sockets: [::] is IPv6 alone, so that 0.0.0.0 may stand beside it.
  if (endpoint.protocol().family() == AF_INET6)
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const auto* address = static_cast<const sockaddr*>(static_cast<const void*>(endpoint.data()));
  if (::bind(descriptor, address, static_cast<socklen_t>(endpoint.size())) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  return -error;
}

config::Address bound_address(int descriptor, const config::Address& asked) {
  tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (::getsockname(descriptor, endpoint.data(), &size) != 0) return asked;
  endpoint.resize(size);
  const std::string host = endpoint.address().to_string();
  const char* pattern = endpoint.address().is_v6() ? "[{}]:{}" : "{}:{}";
  return {.text = fmt::format(fmt::runtime(pattern), host, endpoint.port()),
          .host = host,
          .port = endpoint.port(),
          .path = {}};
}

Error cannot_listen(const config::Listener& listener, std::string_view cause) {
  return fail(fmt::format("listener {}: cannot listen on {}: {}", listener.name,
                          listener.address.text, cause));
}

// Binds the path; replaces a socket that nobody listens on any more. A descriptor, or minus the
// error number.
int listen_on_path(const config::Address& address) {
  constexpr int kBacklog = 4096;  // cut by net.core.somaxconn
  sockaddr_un path{};
  if (address.path.size() >= sizeof path.sun_path) return -ENAMETOOLONG;
  path.sun_family = AF_UNIX;
  std::ranges::copy(address.path, path.sun_path);
  const auto* name = static_cast<const sockaddr*>(static_cast<const void*>(&path));

  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return -errno;
  if (::connect(probe, name, sizeof path) != 0 && errno == ECONNREFUSED) ::unlink(path.sun_path);
  ::close(probe);

  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  if (::bind(descriptor, name, sizeof path) == 0 && ::listen(descriptor, kBacklog) == 0)
    return descriptor;
  const int error = errno;
  ::close(descriptor);
  return -error;
}

}  // namespace

Ports::~Ports() {
  for (const Held& held : held_) give_back(held);
}

Result<config::Address> Ports::hold(const config::Listener& listener, const HostAddresses& hosts) {
  const config::Address& asked = listener.address;
  for (const Held& held : held_)
    if (held.serves(listener)) return held.taken;
  if (asked.is_unix()) return hold_path(listener);

  const std::vector<upstream::Endpoint> candidates = endpoints(asked, hosts);
  if (candidates.empty()) return cannot_listen(listener, "the name does not resolve");

  // SO_REUSEPORT alone would share the port with another process of the same user unnoticed.
  if (asked.port != 0) {
    const int probe = bind_socket(candidates.front(), SO_REUSEADDR);
    if (probe < 0) return cannot_listen(listener, cause_of(-probe));
    ::close(probe);
  }
  const int descriptor = bind_socket(candidates.front(), SO_REUSEPORT);
  if (descriptor < 0) return cannot_listen(listener, cause_of(-descriptor));
  config::Address taken = bound_address(descriptor, asked);
  held_.push_back({listener.name, asked, taken, descriptor});
  return taken;
}

void Ports::keep_only(const std::vector<config::Listener>& listeners) {
  std::erase_if(held_, [&](const Held& held) {
    const auto serves = [&](const config::Listener& listener) { return held.serves(listener); };
    if (std::ranges::any_of(listeners, serves)) return false;
    give_back(held);
    return true;
  });
}

Result<config::Address> Ports::hold_path(const config::Listener& listener) {
  const config::Address& asked = listener.address;
  const int descriptor = listen_on_path(asked);
  if (descriptor == -EADDRINUSE) return cannot_listen(listener, "the path is in use");
  if (descriptor < 0) return cannot_listen(listener, std::strerror(-descriptor));
  held_.push_back({listener.name, asked, asked, descriptor});
  return asked;
}

int Ports::listening(const config::Address& address) const noexcept {
  if (!address.is_unix()) return -1;
  const auto held = std::ranges::find(held_, address, &Held::asked);
  return held == held_.end() ? -1 : held->descriptor;
}

void Ports::give_back(const Held& held) noexcept {
  ::close(held.descriptor);
  if (held.asked.is_unix()) ::unlink(held.asked.path.c_str());
}

}  // namespace clockwise::runtime
