#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace clockwise::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kWidth = 30;

}  // namespace

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + 1s) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(std::uint64_t done) {
  if (!terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + 100ms;
  shown_ = true;
  if (total_ == 0) {
    fmt::print(stderr, "\r{} {} MiB", what_, done >> 20);
  } else {
    done = std::min(done, total_);
    fmt::print(stderr, "\r{} [{:<{}}] {:3} %", what_, std::string(kWidth * done / total_, '#'),
               kWidth, 100 * done / total_);
  }
  std::fflush(stderr);
}

}  // namespace clockwise::cli
