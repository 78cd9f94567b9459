// How a command is done where several servers hold the same item.
//
// The owners of an item stand in the order in which they are asked; the place of one is its number
// there, from 0. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "memcached/command.h"
#include "memcached/reply.h"

namespace clockwise::memcached {

// Which of the owners a command is for.
enum class Reach : std::uint8_t {
  search,   // one after another, until one has the item
  first,    // one alone: where it finds nothing it makes something
  all,      // all at once
  decided,  // one decides; where it has done it the others follow
};
// REQUIRES: the command has a key.
[[nodiscard]] Reach reach_of(const Command& command) noexcept;

// The lifetime that a read sets by the way: gat, gats, mg with T.
[[nodiscard]] std::optional<std::int64_t> touch_of(const Command& command) noexcept;

// Each of these puts the flags of the command that it returns into `scratch`, which has to last as
// long.

// What the owners do that follow: the same without its condition, in silence.
[[nodiscard]] Command follower_of(const Command& command, std::string& scratch);
// Where there is no item it makes one: ma, and ms that appends, with N.
[[nodiscard]] bool makes(const Command& command) noexcept;
// The same for an item that is there already.
[[nodiscard]] Command without_making(const Command& command, std::string& scratch);
// With the unique of its condition as the owner at that place counts.
[[nodiscard]] Command command_at(const Command& command, std::uint32_t place, std::string& scratch);
// The deletion of a key as the ring hashes it, and a new lifetime for its item; `key`: a key in
// base64, where it has to be.
[[nodiscard]] Command deletion_of(std::string_view ring_key, std::string& key);
[[nodiscard]] Command touch_for(std::string_view ring_key, std::int64_t exptime, std::string& key,
                                std::string& scratch);

// A unique as clients are told it, from what the owner at that place counts, and back. Each server
// counts for itself: without a mark the unique of one owner could be that of another version on the
// next. No count reaches the bits of the mark, and what the first owner says stays as it is.
[[nodiscard]] constexpr std::uint64_t unique_at(std::uint64_t unique,
                                                std::uint32_t place) noexcept {
  return unique ^ (std::uint64_t{place} << 60);
}
// Appends the line of an answer to `out`, its unique as clients are told it, with its CRLF.
void append_answer(const Reply& reply, std::uint32_t place, std::string& out);

// What the answer of one owner means beside those of the others.
enum class Did : std::uint8_t {
  done,
  missed,   // it does not have the item, or it was there already
  refused,  // it has another one than the command is for
  failed,   // the server could not
};
[[nodiscard]] Did did(Verb verb, ReplyKind kind) noexcept;

}  // namespace clockwise::memcached
