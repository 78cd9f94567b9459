// The lines of a head: the values of those of one field in their order, and all of a stored one.
// Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "http/head.h"
#include "http/octets.h"

namespace clockwise::cache {

using Lines = std::vector<std::string_view>;

// `octets`: what `fields` count from; `name` in any case.
[[nodiscard]] inline Lines lines_of(std::string_view octets,
                                    std::span<const http::FieldLine> fields,
                                    std::string_view name) {
  Lines lines;
  for (const http::FieldLine& line : fields)
    if (http::same_ignoring_case(http::name_of(octets, line), name))
      lines.push_back(http::value_of(octets, line));
  return lines;
}

// Calls `f` with each line of a stored head, its CRLF included, until it says false.
template <class F>
void each_line(std::string_view head, F f) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find('\n') + 1);
    if (!f(line)) return;
    head.remove_prefix(line.size());
  }
}

}  // namespace clockwise::cache
