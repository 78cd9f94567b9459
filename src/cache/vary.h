// Which stored answer of a URI fits a request (RFC 9111 section 4.1).
//
// Pure. Every variant keeps the fields that its own Vary names with the values of the request that
// it answered: Vary may differ from answer to answer. Values are compared in a form in which what
// means the same is the same (RFC 9111 4.1 allows it): blanks round commas do not count; of
// Accept-Language neither case nor the order among equal weights; of Accept-Encoding only which
// codings are accepted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/lines.h"

namespace clockwise::cache {

// One field of a selecting header. Absent matches only absent, so it is not the empty value.
struct Selector {
  std::string name;  // lower case
  bool present = false;
  std::string value;  // normalised

  friend bool operator==(const Selector&, const Selector&) = default;
};

// What a request says to the fields that the Vary lines of an answer name, each once, by name.
// REQUIRES: no line holds *.
[[nodiscard]] std::vector<Selector> selectors(const Lines& vary, std::string_view request,
                                              std::span<const http::FieldLine> fields);

[[nodiscard]] bool matches(std::span<const Selector> stored, std::string_view request,
                           std::span<const http::FieldLine> fields);

// The same as octets, for storing: equal selectors give equal text, none gives none.
[[nodiscard]] std::string pack(std::span<const Selector> selectors);
[[nodiscard]] std::vector<Selector> unpack(std::string_view packed);

}  // namespace clockwise::cache
