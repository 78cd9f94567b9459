// Holds the addresses of the listeners for the whole life of the process.
//
// Every worker opens a listening socket of its own on the same port (SO_REUSEPORT). Before they do,
// a socket that never listens takes the port: it finds out whether the port is free, chooses one
// for port 0, and keeps it ours.
//
// The path of a unix socket can be bound only once: there the socket held here is the one that
// listens, and each worker accepts from a duplicate of it. A file that a process left behind
// without removing it is replaced; ours is removed when the address is given back.
#pragma once

#include <string>
#include <vector>

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
  // The listening socket of a unix address that is held; -1: each worker opens its own.
  [[nodiscard]] int listening(const config::Address& address) const noexcept;
  // Gives back every address that none of `listeners` asks for.
  void keep_only(const std::vector<config::Listener>& listeners);

 private:
  struct Held {
    std::string listener;
    config::Address asked, taken;
    int descriptor;

    // A fixed address may pass to a listener of another name; a free port is chosen for each.
    [[nodiscard]] bool serves(const config::Listener& other) const {
      return asked == other.address &&
             (asked.port != 0 || asked.is_unix() || listener == other.name);
    }
  };
  [[nodiscard]] Result<config::Address> hold_path(const config::Listener& listener);
  static void give_back(const Held& held) noexcept;

  std::vector<Held> held_;
};

}  // namespace clockwise::runtime
