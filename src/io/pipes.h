// Pipes for splice(2): big plain bodies move from socket to socket without passing through user
// space.
//
// A pipe is lent for one body and must come back empty. One thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace clockwise::io {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  std::size_t capacity = 0;
};

class PipePool {
 public:
  static constexpr int kWantedCapacity = 1024 * 1024;  // 64 KiB where the system refuses more
  static constexpr std::size_t kKept = 32;

  PipePool() = default;
  ~PipePool();
  PipePool(const PipePool&) = delete;
  PipePool& operator=(const PipePool&) = delete;

  // Nothing when descriptors are short: the caller relays through a buffer instead.
  [[nodiscard]] std::optional<Pipe> take();
  void give_back(Pipe pipe, bool is_empty) noexcept;

 private:
  std::vector<Pipe> free_;
};

}  // namespace clockwise::io
