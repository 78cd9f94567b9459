// How a stored answer serves a request: whole, in part, or as not modified (RFC 9110 sections 13
// and 14, RFC 9111 4.3.2). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/object.h"
#include "cache/ranges.h"
#include "cache/wish.h"
#include "http/head.h"

namespace clockwise::cache {

struct Served {
  std::uint16_t status = 200;
  std::vector<ByteRange> parts;  // of 206: one, or those of multipart/byteranges
};

// `method`: GET or HEAD, which has no parts. `length` of the body; Fill::kUnknown while it is not
// known: then no part can be given.
[[nodiscard]] Served serve(const Object& object, http::Method method, const Wish& wish,
                           std::string_view octets, std::span<const http::FieldLine> fields,
                           std::uint64_t length, std::int64_t now);

// The lines of a stored head that go with a status; all of them but for those that describe a
// content which is not sent (304, 416) or is another (multipart/byteranges).
void append_head(std::string_view head, bool describes_content, std::string& out);

}  // namespace clockwise::cache
