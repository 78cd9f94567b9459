#include "proxy/splice.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace clockwise::proxy {
namespace {

constexpr std::uint64_t kPerEvent = 4 * 1024 * 1024;

// Never with SPLICE_F_MORE: whether more follows soon is not known, and where it does not, the
// kernel would hold the last octets back for 200 ms.
ssize_t move(int from, int to, std::size_t size) noexcept {
  constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
  ssize_t n;
  do {
    n = ::splice(from, nullptr, to, nullptr, size, kFlags);
  } while (n < 0 && errno == EINTR);
  return n;
}

}  // namespace

Splice::State Splice::run() noexcept {
  std::uint64_t moved = 0;
  while (true) {
    bool source_dry = false;
    if (left_ > 0 && !ended_ && in_pipe_ < pipe_.capacity) {
      const auto want = std::min<std::uint64_t>(left_, pipe_.capacity - in_pipe_);
      const ssize_t n = move(from_.splice_handle(), pipe_.write_end, want);
      if (n > 0) {
        in_pipe_ += static_cast<std::size_t>(n);
        received_ += static_cast<std::uint64_t>(n);
        if (left_ != ~std::uint64_t{0}) left_ -= static_cast<std::uint64_t>(n);
      } else if (n == 0) {
        ended_ = true;
      } else if (errno != EAGAIN) {
        return State::source_failed;
      } else {
        source_dry = true;  // or the pipe has no slot left: then in_pipe_ is not 0
      }
    }
    if (in_pipe_ > 0) {
      const ssize_t n = move(pipe_.read_end, to_.splice_handle(), in_pipe_);
      if (n < 0) return errno == EAGAIN ? State::wait_sink : State::sink_failed;
      in_pipe_ -= static_cast<std::size_t>(n);
      sent_ += static_cast<std::uint64_t>(n);
      moved += static_cast<std::uint64_t>(n);
    }
    if (in_pipe_ > 0) continue;
    if (left_ == 0) return State::done;
    if (ended_) return State::source_ended;
    if (source_dry || moved >= kPerEvent) return State::wait_source;
  }
}

}  // namespace clockwise::proxy
