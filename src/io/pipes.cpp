#include "io/pipes.h"

#include <fcntl.h>
#include <unistd.h>

namespace clockwise::io {
namespace {

void close_both(const Pipe& pipe) noexcept {
  ::close(pipe.read_end);
  ::close(pipe.write_end);
}

}  // namespace

PipePool::~PipePool() {
  for (const Pipe& pipe : free_) close_both(pipe);
}

std::optional<Pipe> PipePool::take() {
  if (!free_.empty()) {
    const Pipe pipe = free_.back();
    free_.pop_back();
    return pipe;
  }
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return std::nullopt;
  int size = ::fcntl(ends[1], F_SETPIPE_SZ, kWantedCapacity);
  if (size < 0) size = ::fcntl(ends[1], F_GETPIPE_SZ);
  return Pipe{ends[0], ends[1], size > 0 ? static_cast<std::size_t>(size) : 65536};
}

void PipePool::give_back(Pipe pipe, bool is_empty) noexcept {
  if (is_empty && free_.size() < kKept) {
    free_.push_back(pipe);
  } else {
    close_both(pipe);
  }
}

}  // namespace clockwise::io
