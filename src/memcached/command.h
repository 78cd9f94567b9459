// One command of a memcached client: the text protocol with its meta commands.
//
// A line is read as a server of version 1.6 reads it, number by number: what it would refuse is
// refused here, with its answer, and never sent on. So the connection to a server that many clients
// share cannot get out of step. Pure; views point into the octets that were scanned.
//
// Source: memcached's doc/protocol.txt, and the behaviour of 1.6.18 where that is silent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace clockwise::memcached {

enum class Verb : std::uint8_t {
  get,
  gets,
  gat,
  gats,
  set,
  add,
  replace,
  append,
  prepend,
  cas,
  remove,  // delete
  incr,
  decr,
  touch,
  meta_get,
  meta_set,
  meta_delete,
  meta_arithmetic,
  meta_debug,
  meta_noop,
  version,
  stats,
  verbosity,
  flush_all,
  quit,
};

// get, gets, gat, gats: any number of keys.
[[nodiscard]] constexpr bool is_retrieval(Verb verb) noexcept { return verb <= Verb::gats; }
// It leaves items as they are, but for their lifetime.
[[nodiscard]] constexpr bool is_read(Verb verb) noexcept {
  return is_retrieval(verb) || verb == Verb::meta_get || verb == Verb::meta_debug;
}
// A data block follows the line.
[[nodiscard]] constexpr bool is_storage(Verb verb) noexcept {
  return (verb >= Verb::set && verb <= Verb::cas) || verb == Verb::meta_set;
}
[[nodiscard]] constexpr bool is_meta(Verb verb) noexcept {
  return verb >= Verb::meta_get && verb <= Verb::meta_noop;
}
// Once more does no harm, should the first have been done unseen.
[[nodiscard]] bool is_repeatable(Verb verb) noexcept;
// As it stands in a line.
[[nodiscard]] std::string_view name_of(Verb verb) noexcept;

struct Command {
  Verb verb = Verb::get;
  std::uint32_t line_size = 0;  // with its end; what comes after that is the data block, if any
  std::string_view key;         // the first one, as on the wire; empty where the verb has none
  // Behind the key: the further keys of a retrieval (see next_word), the flags of a meta command.
  // Of a verb without a key: its arguments.
  std::string_view rest;
  std::uint32_t keys = 0;    // of a retrieval
  std::uint32_t flags = 0;   // of a storage command; those of ms are words in `rest`
  std::int64_t exptime = 0;  // the same; of touch, gat and gats; delay of flush_all
  std::uint32_t length = 0;  // of the data block without its CRLF
  std::uint64_t number = 0;  // of cas: the unique; of incr and decr: the amount
  bool noreply = false;      // the last word of the line said so
  bool quiet = false;        // meta flag q
  bool base64_key = false;   // meta flag b
};

enum class Scanned : std::uint8_t {
  more,     // the line has no end yet
  command,  // `command` is filled
  refused,  // the client gets `answer`; the line is over: command.line_size says where
  hopeless  // the client gets `answer`, if there is one, and then the end of the connection
};

struct Refusal {
  std::string_view answer;  // a line with its CRLF; static; empty: the binary protocol is spoken
  // The data block that follows the line is thrown away, so many octets with its CRLF; 0: what
  // follows is the next command, as a server takes it.
  std::uint64_t skip = 0;
  // What a server does to the old value of command.key when it refuses so: set and ms of one that
  // is too large.
  bool deletes_key = false;
  bool silent = false;  // noreply: nothing is answered
};

// The longest line that is not a retrieval, and the longest retrieval.
inline constexpr std::size_t kMaxLine = std::size_t{8} << 10;
inline constexpr std::size_t kMaxRetrievalLine = std::size_t{2} << 20;
inline constexpr std::size_t kMaxKey = 250;
// The first octet of a request in the binary protocol, and of no command: hopeless.
inline constexpr char kBinaryProtocol = '\x80';

// The command at the front of `octets`. `scanned`: how many of them have been looked at before; 0
// for the first call, then what the last one left. `largest_value`: what a server takes.
// REQUIRES: !octets.empty().
[[nodiscard]] Scanned scan_command(std::string_view octets, std::uint32_t largest_value,
                                   std::size_t& scanned, Command& command, Refusal& refusal);

// Takes the first word off `words`; empty: there is none.
[[nodiscard]] std::string_view next_word(std::string_view& words) noexcept;

// What the ring hashes: of a key in base64 what it stands for, which is put into `scratch`.
// REQUIRES: scan_command() took the command.
[[nodiscard]] std::string_view ring_key(const Command& command, std::string& scratch);

// The line of a command that is not a retrieval as a server gets it: single blanks, and without
// noreply and q, since servers answer errors even to those. With its CRLF. What a server passes
// over is left out. REQUIRES: !is_retrieval(command.verb).
void append_line(const Command& command, std::string& out);

// The line that deletes the item of a key as the ring hashes it. One that cannot stand in a line is
// deleted by md, whose answers are others. Returns whether it is that.
bool append_delete(std::string_view key, std::string& out);

}  // namespace clockwise::memcached
