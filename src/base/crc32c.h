// CRC-32C (Castagnoli; RFC 3720 appendix B.4): whether stored octets are those that were written.
//
// By the machine's own instruction where it has one, by a table elsewhere. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace clockwise {

// Of what `before` is the sum of, with `octets` behind it.
[[nodiscard]] std::uint32_t crc32c(std::string_view octets, std::uint32_t before = 0) noexcept;

// The same without the machine's help.
[[nodiscard]] std::uint32_t crc32c_by_table(std::string_view octets,
                                            std::uint32_t before = 0) noexcept;

}  // namespace clockwise
