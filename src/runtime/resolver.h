// From host names to addresses, without ever holding up the caller for longer than it allows.
//
// Numeric addresses and unix sockets need no look-up. Names are looked up by the system's resolver,
// which may hang for as long as it likes, so each runs on a thread of its own; what comes late is
// handed out by the next call.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/model.h"
#include "upstream/routing.h"

namespace clockwise::runtime {

// The addresses of each host that has an answer; a host that is absent does not resolve now.
using HostAddresses = std::map<std::string, std::vector<boost::asio::ip::address>>;

// The name that has to be looked up; nothing for a numeric address or a unix socket.
[[nodiscard]] std::optional<std::string> host_name(const config::Address& address);

// Where `address` is; empty when its name is not in `hosts`.
[[nodiscard]] std::vector<upstream::Endpoint> endpoints(const config::Address& address,
                                                        const HostAddresses& hosts);

class Resolver {
 public:
  Resolver();
  ~Resolver();  // does not wait for look-ups under way
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Blocks until every host is answered, at most for `patience`.
  [[nodiscard]] HostAddresses lookup(const std::set<std::string>& hosts,
                                     std::chrono::milliseconds patience);
  // Ends a lookup under way, and every later one at once: the process stops. Any thread.
  void give_up();

 private:
  struct Shared;  // outlives the Resolver for as long as a look-up is under way
  std::shared_ptr<Shared> shared_;
};

}  // namespace clockwise::runtime
