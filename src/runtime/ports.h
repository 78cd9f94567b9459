// Holds the addresses of the listeners for the whole life of the process.
//
// Every worker opens a listening socket of its own on the same port (SO_REUSEPORT). Before they do, a
// socket that never listens takes the port: it finds out whether the port is free, chooses one for
// port 0, and keeps it ours.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "config/model.h"
#include "runtime/resolver.h"

namespace clockwise::runtime {

class Ports {
 public:
  Ports() = default;
  ~Ports();
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  // Takes the address of a listener, or finds that it is held already. Returns it with numeric host
  // and real port. The error is one line that names the listener, the address and the cause.
  [[nodiscard]] Result<config::Address> hold(const config::Listener& listener,
                                             const HostAddresses& hosts);
  // Gives an address back. REQUIRES: no worker listens there any more.
  void release(const std::string& listener);

 private:
  struct Held {
    int descriptor;
    config::Address asked, taken;
  };
  std::map<std::string, Held> held_;  // by listener
};

}  // namespace clockwise::runtime
