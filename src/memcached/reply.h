// One line of a memcached server's answer.
//
// Strict: what is not exactly a line that a server sends is bad, and the connection on which it
// came has to be closed. Pure; views point into the octets that were scanned.
//
// Source: memcached's doc/protocol.txt, and the behaviour of 1.6.18 where that is silent.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcached/command.h"

namespace clockwise::memcached {

enum class ReplyKind : std::uint8_t {
  value,  // VALUE and VA: `length` octets and a CRLF follow
  end,    // END of a retrieval, EN of mg: a miss
  stored,
  not_stored,
  exists,
  not_found,
  deleted,
  touched,
  ok,
  number,  // of incr and decr
  version,
  stat,
  reset,
  meta_done,        // HD
  meta_not_stored,  // NS
  meta_exists,      // EX
  meta_not_found,   // NF
  meta_noop,        // MN
  meta_debug,       // ME
  error,            // ERROR: it does not know the command
  client_error,
  server_error,
};

[[nodiscard]] constexpr bool is_error(ReplyKind kind) noexcept { return kind >= ReplyKind::error; }

struct Reply {
  ReplyKind kind = ReplyKind::error;
  std::uint32_t size = 0;    // of the line, with its CRLF
  std::string_view line;     // without it
  std::string_view key;      // of VALUE
  std::string_view rest;     // the flags of a meta answer; the text of an error
  std::uint32_t flags = 0;   // of VALUE
  std::uint32_t length = 0;  // of VALUE and VA: octets of the value
  std::uint64_t number = 0;  // the unique of VALUE, where it has one; the new number
  bool has_unique = false;
};

enum class ReplyScan : std::uint8_t { more, complete, bad };

// The longest line that is believed to be one.
inline constexpr std::size_t kMaxReplyLine = 2048;

// The line at the front of `octets`. `scanned`: as in scan_command(). `largest_value`: a longer one
// is bad. REQUIRES: !octets.empty().
[[nodiscard]] ReplyScan scan_reply(std::string_view octets, std::uint32_t largest_value,
                                   std::size_t& scanned, Reply& reply);

// Whether such a line can be the answer to a command. One that cannot shows that the connection is
// out of step.
[[nodiscard]] bool answers(Verb verb, const Reply& reply) noexcept;

// The value of a meta flag such as `t` among `flags`; `found` says whether it is there. The value
// of a flag that has none is empty.
[[nodiscard]] std::string_view meta_flag(std::string_view flags, char flag, bool& found) noexcept;
[[nodiscard]] inline bool has_meta_flag(std::string_view flags, char flag) noexcept {
  bool found = false;
  (void)meta_flag(flags, flag, found);
  return found;
}
// Its number; 0: it is not there, or has none.
template <class T>
[[nodiscard]] T meta_number(std::string_view flags, char flag) noexcept {
  bool found = false;
  const std::string_view text = meta_flag(flags, flag, found);
  T number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace clockwise::memcached
