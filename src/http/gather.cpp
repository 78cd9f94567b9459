#include "http/rewrite.h"

namespace clockwise::http {

std::size_t Gather::size() const noexcept {
  std::size_t octets = 0;
  for (const std::string_view slice : slices()) octets += slice.size();
  return octets;
}

void Gather::spill(std::string_view next) {
  if (spilled_.empty()) {
    for (const std::string_view slice : slices()) spilled_.append(slice);
    used_ = kScratch;  // nothing more goes there
  }
  spilled_.append(next);
  slices_[0] = spilled_;
  count_ = 1;
}

}  // namespace clockwise::http
