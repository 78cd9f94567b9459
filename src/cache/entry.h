// A stored answer as other proxies read it: one value of a store that they share, and the keys by
// which such values are found.
//
// A value is a front of fixed size, the texts, the body, and the CRC-32C of all that. Whoever reads
// one believes nothing: what is of another version, cut, changed or for another key is no entry.
// An answer whose body is too large for one value is a manifest, and parts under keys that nobody
// can have used before. What answers a key with Vary is found in two steps: under the key stands
// which fields decide, under a key made of what the request says to them the answer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/policy.h"

namespace clockwise::cache {

struct Entry {
  enum class Kind : std::uint8_t {
    answer,    // with its body
    manifest,  // its body stands in parts
    vary       // which fields decide
  };

  Kind kind = Kind::answer;
  std::uint16_t status = 200;
  Terms terms;                   // received_ms since 1970
  std::int64_t asked_ms = 0;     // since 1970: when it was asked for, or confirmed the last time
  std::uint64_t generation = 0;  // drawn for the parts of a manifest, the answers behind a vary
  std::uint64_t length = 0;      // of the body
  std::uint32_t part_size = 0;   // of all parts of a manifest but the last
  std::string_view key, head, selectors, tags;  // as of Object; of vary `selectors` are the names,
                                                // with commas between them
  std::string_view body;                        // of an answer that was read

  [[nodiscard]] std::uint64_t parts() const noexcept {
    return part_size == 0 ? 0 : (length + part_size - 1) / part_size;
  }
};

// The most parts that an answer has.
inline constexpr std::uint64_t kMostParts = 64;
// A part is its octets and so many more; the last ones of any value are its sum.
inline constexpr std::size_t kPartMore = 20, kSumSize = 4;

// The value without its body and its sum, which the writer puts behind it: see crc32c().
// REQUIRES: no text is longer than those of an Object can be.
[[nodiscard]] std::string front_of(const Entry& entry);
[[nodiscard]] std::string part_front(std::uint64_t generation, std::uint32_t index);
[[nodiscard]] std::string packed_sum(std::uint32_t sum);

// Nothing: it is none. Views into `value`.
[[nodiscard]] std::optional<Entry> read_entry(std::string_view value);
[[nodiscard]] std::optional<std::string_view> read_part(std::string_view value,
                                                        std::uint64_t generation,
                                                        std::uint32_t index);

// Of what answers `key` alone, and where it is said which fields decide:
// <space>:<32 hexadecimal digits>.
[[nodiscard]] std::string entry_key(std::string_view space, std::string_view key);
// Of the answer to requests that say so (cache/vary.h) to the fields that decide.
[[nodiscard]] std::string variant_key(std::string_view entry_key, std::uint64_t generation,
                                      std::string_view selectors);
[[nodiscard]] std::string part_key(std::string_view entry_key, std::uint64_t generation,
                                   std::uint32_t index);

// How long it is of use from now on: fresh, stale, or to be validated. 0: not at all.
[[nodiscard]] Seconds time_left(const Terms& terms, std::int64_t now_ms) noexcept;

}  // namespace clockwise::cache
