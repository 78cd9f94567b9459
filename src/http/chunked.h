// Decoder of the chunked transfer coding (RFC 9112 section 7.1), incremental at every octet.
//
// Gives back the data without its framing; the proxy writes framing of its own. Strict: 1 to 16 hex
// digits up to 2^63-1, CRLF only, blanks only where an extension follows, extensions parsed,
// bounded and dropped, trailers checked, bounded and dropped. Pure; a few words of state, so that
// it can live in the connection.
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

  // Why it is bad; static text.
  [[nodiscard]] std::string_view error() const noexcept { return error_; }

  // Bounds for one message: all extensions together, and the trailer section.
  static constexpr std::size_t kMaxExtensionOctets = 4 * 1024;
  static constexpr std::size_t kMaxTrailerOctets = 32 * 1024;
  static constexpr std::size_t kMaxTrailerFields = 100;

 private:
  enum class At : std::uint8_t {
    size_first,
    size,
    size_lf,  // chunk-size [ ext ] CRLF
    ext_blank,
    ext_name_first,
    ext_name,
    ext_name_blank,  // BWS ";" BWS name BWS
    ext_value_first,
    ext_value,
    ext_quoted,
    ext_escape,
    ext_quoted_end,  // "=" BWS value
    data,
    data_cr,
    data_lf,
    trailer_first,
    trailer_name,
    trailer_value,
    trailer_lf,
    last_lf,
    done,
    bad,
  };

  At next(char octet) noexcept;
  At after_size(char octet) noexcept;
  At in_extension(char octet) noexcept;
  At in_trailer(char octet) noexcept;
  At end_size_line() noexcept;
  At fail(std::string_view why) noexcept;

  At at_ = At::size_first;
  std::uint8_t digits_ = 0;
  std::uint16_t extension_octets_ = 0;
  std::uint16_t trailer_octets_ = 0;
  std::uint8_t trailer_fields_ = 0;
  std::uint64_t left_ = 0;  // of the chunk: the size while it is read, then what is still to come
  std::string_view error_;
};

}  // namespace clockwise::http
