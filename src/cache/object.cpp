#include "cache/object.h"

#include <algorithm>

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

Cursor::Cursor(const Object& object, std::uint64_t offset) noexcept : object_(&object.body()) {
  advance(offset);
}

// A piece that is used up is left only when there is more: until then its successor may not be
// linked yet.
std::string_view Cursor::run(std::uint64_t end) noexcept {
  if (offset_ >= end) return {};
  while (at_ == piece_size()) next_piece();
  const char* begin = extent_ == nullptr ? object_->inline_body() : extent_->data();
  return {begin + at_, static_cast<std::size_t>(std::min(end - offset_, piece_size() - at_))};
}

void Cursor::advance(std::uint64_t n) noexcept {
  offset_ += n;
  while (n > piece_size() - at_) {
    n -= piece_size() - at_;
    next_piece();
  }
  at_ += n;
}

}  // namespace clockwise::cache
