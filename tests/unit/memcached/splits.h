// Feeds a scanner in pieces: the answer must not depend on where the octets were cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "memcached/command.h"
#include "memcached/reply.h"

namespace clockwise::memcached::test {

// All that a scan says, as text: two scans agree when these are equal.
inline std::string summary(const Command& command) {
  std::string text(name_of(command.verb));
  text.append("|").append(command.key).append("|").append(command.rest).append("|");
  for (const std::uint64_t number :
       {std::uint64_t{command.line_size}, std::uint64_t{command.keys}, std::uint64_t{command.flags},
        static_cast<std::uint64_t>(command.exptime), std::uint64_t{command.length}, command.number,
        std::uint64_t{command.noreply}, std::uint64_t{command.quiet},
        std::uint64_t{command.base64_key}}) {
    text += std::to_string(number) + "|";
  }
  return text;
}

inline std::string summary(Scanned scanned, const Command& command, const Refusal& refusal) {
  if (scanned == Scanned::more) return "more";
  if (scanned == Scanned::command) return summary(command);
  std::string text(refusal.answer);
  text += std::to_string(refusal.skip) + "|" + std::to_string(int{refusal.deletes_key}) + "|" +
          std::to_string(int{refusal.silent});
  if (scanned == Scanned::hopeless) return "hopeless|" + text;
  if (refusal.deletes_key) text.append("|").append(command.key);
  return std::to_string(command.line_size) + "|" + text;
}

inline std::string summary(ReplyScan scanned, const Reply& reply) {
  if (scanned == ReplyScan::more) return "more";
  if (scanned == ReplyScan::bad) return "bad";
  std::string text(reply.line);
  text.append("|").append(reply.key).append("|").append(reply.rest).append("|");
  for (const std::uint64_t number :
       {static_cast<std::uint64_t>(reply.kind), std::uint64_t{reply.size},
        std::uint64_t{reply.flags}, std::uint64_t{reply.length}, reply.number,
        std::uint64_t{reply.has_unique}}) {
    text += std::to_string(number) + "|";
  }
  return text;
}

// `next()` says how many more octets come; `scan(prefix, seen)` is called as a connection would,
// until it says something else than that it wants more.
template <class Next, class Scan>
std::string in_pieces(std::string_view octets, Next next, Scan scan) {
  std::size_t seen = 0;
  for (std::size_t size = next(); size < octets.size(); size += next()) {
    const std::string said = scan(octets.substr(0, size), seen);
    if (said != "more") return said;
  }
  return scan(octets, seen);
}

}  // namespace clockwise::memcached::test
