// Decoder of the chunked transfer coding (RFC 9112 section 7.1), incremental at every octet.
//
// Gives back the data without its framing; the proxy writes framing of its own. Strict: 1 to 16 hex
// digits, CRLF only, extensions parsed, bounded and dropped, trailers checked, bounded and dropped.
// Pure; a few words of state, so that it can live in the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace clockwise::http {

class ChunkedDecoder {
 public:
  enum class State : std::uint8_t { more, done, bad };

  struct Step {
    State state;
    std::size_t consumed;   // octets of the input that belong to this message
    std::string_view data;  // body octets in the input, possibly empty; a part of what was consumed
  };

  // Reads from `input` until one piece of data, the end, an error, or the end of the input. Call
  // again with the rest while it says `more` and octets are left.
  [[nodiscard]] Step step(std::string_view input) noexcept;

  // Octets of the current chunk that are still to come: lets a relay splice them unread. 0 while in
  // framing.
  [[nodiscard]] std::uint64_t data_left() const noexcept;
  // `n` octets of the current chunk were taken past the decoder. REQUIRES: n <= data_left().
  void skip_data(std::uint64_t n) noexcept;

  // Why it is bad; static text.
  [[nodiscard]] std::string_view error() const noexcept { return error_; }

  // Bounds for one message: all extensions together, and the trailer section.
  static constexpr std::size_t kMaxExtensionOctets = 4 * 1024;
  static constexpr std::size_t kMaxTrailerOctets = 32 * 1024;
  static constexpr std::size_t kMaxTrailerFields = 100;

 private:
  // The implementer adds the state here.
  std::string_view error_;
};

}  // namespace clockwise::http
