// Moves the rest of a big plain body from socket to socket through a pipe, unread (splice(2)).
//
// Knows nothing of HTTP: so many octets from one descriptor to another. One thread.
#pragma once

#include <cstdint>

#include "io/pipes.h"
#include "io/stream.h"

namespace clockwise::proxy {

class Splice {
 public:
  // Worth a pipe and its calls only from here on; below, a copy is cheaper.
  static constexpr std::uint64_t kWorthIt = 64 * 1024;

  enum class State : std::uint8_t {
    wait_source,
    wait_sink,
    done,
    source_ended,
    source_failed,
    sink_failed
  };

  // `octets` ~0: until the source ends. The pipe is given back by the destructor.
  Splice(io::PipePool& pool, io::Pipe pipe, io::Stream& from, io::Stream& to, std::uint64_t octets,
         bool towards_client) noexcept
      : pool_(pool),
        pipe_(pipe),
        from_(from),
        to_(to),
        left_(octets),
        towards_client_(towards_client) {}
  ~Splice() { pool_.give_back(pipe_, in_pipe_ == 0); }
  Splice(const Splice&) = delete;
  Splice& operator=(const Splice&) = delete;

  // Moves what can be moved now, a bounded amount, so that one body cannot starve the others.
  [[nodiscard]] State run() noexcept;
  [[nodiscard]] bool towards_client() const noexcept { return towards_client_; }
  // Octets taken from the source, and written to the sink, since the last call.
  [[nodiscard]] std::uint64_t take_received() noexcept { return std::exchange(received_, 0); }
  [[nodiscard]] std::uint64_t take_sent() noexcept { return std::exchange(sent_, 0); }

 private:
  io::PipePool& pool_;
  io::Pipe pipe_;
  io::Stream& from_;
  io::Stream& to_;
  std::uint64_t left_;
  std::size_t in_pipe_ = 0;
  std::uint64_t received_ = 0, sent_ = 0;
  bool ended_ = false;
  const bool towards_client_;
};

}  // namespace clockwise::proxy
