// Fixed slots, as Redis Cluster places keys (https://redis.io/docs/latest/operate/oss_and_stack/
// reference/cluster-spec/): CRC-16 of the key modulo 16384 is its slot, and a table that the
// operator keeps says who owns each slot.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ring/ring.h"
#include "simulate/change.h"

namespace clockwise::simulate {

inline constexpr std::uint32_t kSlots = 16'384;

// CRC-16/XMODEM: polynomial 0x1021, start 0, not reflected. crc16("123456789") is 0x31C3.
[[nodiscard]] std::uint16_t crc16(std::string_view text) noexcept;

// The slot of a key. Where the key has a `{`, and a `}` some characters after it, only what stands
// between the first two of them is hashed.
[[nodiscard]] std::uint32_t slot_of(std::string_view key) noexcept;

using SlotTable = std::vector<ring::ServerIndex>;  // by slot, kSlots of them

// A new cluster: contiguous ranges in the order of the list, as even as the weights allow.
// REQUIRES: the weights do not sum to 0.
[[nodiscard]] SlotTable even_slots(std::span<const Node> nodes);

// The table after a resharding that moves as few slots as possible: those of removed servers and
// what others have above their part go to the servers that are below theirs.
// REQUIRES: `table` is one of change.before; the weights of change.after do not sum to 0.
[[nodiscard]] SlotTable reshard(const SlotTable& table, const Change& change);

}  // namespace clockwise::simulate
