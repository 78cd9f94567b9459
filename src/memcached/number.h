// Numbers of a command line as a memcached server reads them, which is as strtol() and its kin do:
// white space, a sign, digits; then the end of the word, or white space and anything. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace clockwise::memcached {

// False: a server refuses it. A number of more bits than the server keeps loses the upper ones, as
// there: 2^32 is read as 0 where 32 bits are kept.
[[nodiscard]] bool read_number(std::string_view word, std::uint64_t& number) noexcept;
[[nodiscard]] bool read_number(std::string_view word, std::uint32_t& number) noexcept;
[[nodiscard]] bool read_number(std::string_view word, std::int32_t& number) noexcept;

// The same, but false for a number of more than 32 bits: to read a data block of another length
// than the client sends serves nobody, and newer servers refuse it.
[[nodiscard]] bool read_length(std::string_view word, std::int32_t& number) noexcept;

}  // namespace clockwise::memcached
