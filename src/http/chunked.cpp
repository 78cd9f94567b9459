#include "http/chunked.h"

#include <algorithm>
#include <limits>

#include "http/octets.h"

namespace clockwise::http {
namespace {

constexpr std::uint8_t kMaxDigits = 16;
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();

}  // namespace

ChunkedDecoder::Step ChunkedDecoder::step(std::string_view input) noexcept {
  std::size_t i = 0;
  while (i < input.size() && at_ < At::done) {
    if (at_ == At::data) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - i));
      left_ -= size;
      if (left_ == 0) at_ = At::data_cr;
      return {State::more, i + size, input.substr(i, size)};
    }
    at_ = next(input[i++]);
  }
  if (at_ == At::bad) return {State::bad, i, {}};
  return {at_ == At::done ? State::done : State::more, i, {}};
}

ChunkedDecoder::At ChunkedDecoder::fail(std::string_view why) noexcept {
  error_ = why;
  return At::bad;
}

ChunkedDecoder::At ChunkedDecoder::next(char octet) noexcept {
  switch (at_) {
    case At::size_first:
      if (hex_value(octet) < 0) return fail("malformed chunk size");
      digits_ = 0;
      left_ = 0;
      [[fallthrough]];
    case At::size:
      if (hex_value(octet) < 0) return after_size(octet);
      left_ = left_ << 4 | static_cast<std::uint64_t>(hex_value(octet));
      if (++digits_ > kMaxDigits || left_ > kMaxSize) return fail("chunk size too large");
      return At::size;
    case At::size_lf:
      return octet == '\n' ? end_size_line() : fail("bare CR in a chunk line");
    case At::data_cr:
      return octet == '\r' ? At::data_lf : fail("chunk data not followed by CRLF");
    case At::data_lf:
      return octet == '\n' ? At::size_first : fail("chunk data not followed by CRLF");
    case At::trailer_first:
    case At::trailer_name:
    case At::trailer_value:
    case At::trailer_lf:
    case At::last_lf:
      return in_trailer(octet);
    default:
      return in_extension(octet);
  }
}

// What may follow a chunk size, or a complete extension.
ChunkedDecoder::At ChunkedDecoder::after_size(char octet) noexcept {
  if (octet == '\r') return At::size_lf;
  if (octet == ';') return At::ext_name_first;
  if (is(octet, kBlank)) return At::ext_blank;
  return fail("malformed chunk size");
}

ChunkedDecoder::At ChunkedDecoder::end_size_line() noexcept {
  return left_ == 0 ? At::trailer_first : At::data;
}

// *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ), RFC 9112 7.1.1.
ChunkedDecoder::At ChunkedDecoder::in_extension(char octet) noexcept {
  constexpr std::string_view kMalformed = "malformed chunk extension";
  if (++extension_octets_ > kMaxExtensionOctets) return fail("chunk extensions too long");
  const bool blank = is(octet, kBlank);
  const bool token = is(octet, kToken);
  switch (at_) {
    case At::ext_blank:
      if (blank) return At::ext_blank;
      return octet == ';' ? At::ext_name_first : fail(kMalformed);
    case At::ext_name_first:
      if (blank) return At::ext_name_first;
      return token ? At::ext_name : fail(kMalformed);
    case At::ext_name:
      if (token) return At::ext_name;
      if (octet == '\r') return At::size_lf;
      [[fallthrough]];
    case At::ext_name_blank:
      if (blank) return At::ext_name_blank;
      if (octet == '=') return At::ext_value_first;
      return octet == ';' ? At::ext_name_first : fail(kMalformed);
    case At::ext_value_first:
      if (blank) return At::ext_value_first;
      if (octet == '"') return At::ext_quoted;
      return token ? At::ext_value : fail(kMalformed);
    case At::ext_value:
      if (token) return At::ext_value;
      [[fallthrough]];
    case At::ext_quoted_end:
      if (octet == '\r' || octet == ';' || blank) return after_size(octet);
      return fail(kMalformed);
    case At::ext_quoted:
      if (octet == '"') return At::ext_quoted_end;
      if (octet == '\\') return At::ext_escape;
      return is(octet, kQuoted) ? At::ext_quoted : fail(kMalformed);
    default:  // ext_escape
      return is(octet, kText) ? At::ext_quoted : fail(kMalformed);
  }
}

// Field lines like those of a head, read octet by octet, then the blank line.
ChunkedDecoder::At ChunkedDecoder::in_trailer(char octet) noexcept {
  constexpr std::string_view kMalformed = "malformed trailer field";
  if (++trailer_octets_ > kMaxTrailerOctets) return fail("trailer section too large");
  switch (at_) {
    case At::trailer_first:
      if (octet == '\r') return At::last_lf;
      if (!is(octet, kToken)) return fail(kMalformed);
      return ++trailer_fields_ > kMaxTrailerFields ? fail("too many trailer fields")
                                                   : At::trailer_name;
    case At::trailer_name:
      if (octet == ':') return At::trailer_value;
      return is(octet, kToken) ? At::trailer_name : fail(kMalformed);
    case At::trailer_value:
      if (octet == '\r') return At::trailer_lf;
      return is(octet, kText) ? At::trailer_value : fail(kMalformed);
    case At::trailer_lf:
      return octet == '\n' ? At::trailer_first : fail(kMalformed);
    default:
      return octet == '\n' ? At::done : fail(kMalformed);  // last_lf
  }
}

}  // namespace clockwise::http
