// What Content-Length and Transfer-Encoding say, read without any tolerance.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace clockwise::http {

// 1*DIGIT up to 2^63-1 and nothing else: no sign, no blank, no list of equal values, although
// RFC 9110 8.6 lets a recipient collapse one.
[[nodiscard]] std::optional<std::uint64_t> content_length(std::string_view value) noexcept;

enum class TransferCoding : std::uint8_t {
  chunked,      // exactly `chunked`
  unsupported,  // well formed, but asks for a coding that is not ours to undo: 501
  malformed,    // an empty member, a parameter, chunked twice or not last: 400
};

[[nodiscard]] TransferCoding transfer_coding(std::string_view value) noexcept;

// One word of letters that names no coding there is, and is not near `chunked` either: nothing can
// have been done to the content, whose end is the end of the connection (RFC 9112 6.3).
[[nodiscard]] bool names_no_coding(std::string_view value) noexcept;

}  // namespace clockwise::http
