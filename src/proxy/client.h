// One client connection as its listener sees it, whatever it speaks. One thread; destroyed by the
// loop once its last operation has ended.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <string_view>

#include "io/loop.h"

namespace clockwise::proxy {

// The place of a client among those without a request, idle or lingering.
using IdleLink =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

class Client : public io::Mortal, public IdleLink {
 public:
  // `counted`: it counts as one of its address's connections (limits.per_client).
  Client(std::string_view ip, bool counted) noexcept
      : ip_size_(static_cast<std::uint8_t>(ip.copy(ip_.data(), ip_.size()))), counted_(counted) {}

  virtual void start() = 0;
  // Stops at the next chance: with the answer under way, or soon when no request comes.
  virtual void drain() = 0;
  virtual void drop() = 0;  // now, whatever is under way
  // Ends a connection without a request, to make room: one that is idle, unless its next request is
  // here already, or one that has had its last answer.
  virtual bool close_if_unused() = 0;
  // Since when it is without a request.
  [[nodiscard]] virtual std::uint64_t waits_since_ns() const noexcept = 0;
  // False: it stands for a fetch that nobody asked for.
  [[nodiscard]] virtual bool has_client() const noexcept { return true; }

  [[nodiscard]] std::string_view client_ip() const noexcept { return {ip_.data(), ip_size_}; }
  [[nodiscard]] bool counted() const noexcept { return counted_; }

  std::uint32_t slot = 0;  // place in the listener's list

 private:
  std::array<char, 46> ip_;
  std::uint8_t ip_size_;
  const bool counted_;
};

}  // namespace clockwise::proxy
