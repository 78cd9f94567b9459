// Base64 as a memcached server reads it in keys. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clockwise::memcached {

// Writes what `text` stands for to `out`, which has room for three octets for every four of it.
// Returns how many that are; 0: it is not base64. Lenient where a server is, because both must see
// one key: octets outside of the alphabet are passed over, the bits left over at the end are not
// looked at, and what follows the padding only has to be complete groups of four.
[[nodiscard]] std::size_t decode_base64(std::string_view text, char* out) noexcept;

// Appends the text that stands for `octets`, padded.
void append_base64(std::string_view octets, std::string& out);

}  // namespace clockwise::memcached
