// The head of a server's answer in the buffer of its connection, within the listener's limits.
#pragma once

#include <cstddef>

#include "config/model.h"
#include "http/head.h"
#include "io/buffer.h"

namespace clockwise::proxy {

// http::scan_response, where a head beyond the limits is refused too; `incomplete` leaves room to
// read on.
[[nodiscard]] inline http::Progress scan_answer(io::Buffer& in, const config::Limits& limits,
                                                http::Method method, http::ResponseHead& head,
                                                std::size_t& scanned) {
  const auto progress =
      http::scan_response(in.view(), {limits.header_size, limits.headers}, method, head, scanned);
  if (progress != http::Progress::incomplete) return progress;
  if (in.size() >= limits.header_size) return http::Progress::refused;
  if (in.full()) in.reserve(limits.header_size + std::size_t{1});
  return http::Progress::incomplete;
}

}  // namespace clockwise::proxy
