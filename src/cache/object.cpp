#include "cache/object.h"

#include "cache/lines.h"
#include "http/octets.h"

namespace clockwise::cache {

std::string_view Object::field(std::string_view name) const noexcept {
  std::string_view value;
  each_line(head(), [&](std::string_view line) {
    if (line.size() <= name.size() || line[name.size()] != ':') return true;
    if (!http::same_ignoring_case(line.substr(0, name.size()), name)) return true;
    value = http::trim(line.substr(name.size() + 1, line.size() - name.size() - 3));
    return false;
  });
  return value;
}

}  // namespace clockwise::cache
