// The values of all lines of one field, in their order. Pure.
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

}  // namespace clockwise::cache
