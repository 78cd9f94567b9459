#include "cache/wish.h"

#include "http/octets.h"

namespace clockwise::cache {

using http::is_name;

Wish wish_of(std::string_view octets, std::span<const http::FieldLine> fields) noexcept {
  Wish wish;
  for (const http::FieldLine& line : fields) {
    if (line.id != http::Field::other) continue;
    const char* const name = octets.data() + line.begin;
    switch (line.name_size) {
      case 5:
        if (is_name(name, "range")) wish.range = true;
        break;
      case 8:
        if (is_name(name, "if-range")) wish.if_range = true;
        if (is_name(name, "if-match")) wish.for_origin = true;
        break;
      case 13:
        if (is_name(name, "cache-control")) wish.control = true;
        if (is_name(name, "authorization")) wish.authorization = true;
        if (is_name(name, "if-none-match")) wish.if_none_match = true;
        break;
      case 17:
        if (is_name(name, "if-modified-since")) wish.if_modified_since = true;
        break;
      case 19:
        if (is_name(name, "if-unmodified-since")) wish.for_origin = true;
        break;
      default:
        break;
    }
  }
  return wish;
}

}  // namespace clockwise::cache
