// A progress bar on stderr: only on a terminal, only when the work takes more than a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace clockwise::cli {

class Progress {
 public:
  // `total` 0: not known, the bar shows what is done only.
  Progress(std::string what, std::uint64_t total);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // May be called as often as one likes.
  void update(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  std::uint64_t total_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace clockwise::cli
