// What all connections of one event loop share: its io_context, blocks, deadlines, pipes, and the
// work that waits for the end of the turn.
//
// One worker thread owns a Loop and runs it; once it runs, nothing here may be touched from another
// thread except by asio::post(loop.io, …), sockets and timers included: they have no locks.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "io/buffer.h"
#include "io/deadlines.h"
#include "io/gather.h"
#include "io/pipes.h"
#include "io/slabs.h"

namespace clockwise::io {

class Stream;

// Something that must outlive the operations it has started. Given to Loop::bury(), it is destroyed
// at the end of a turn in which quiet() holds.
class Mortal {
 public:
  virtual ~Mortal() = default;
  [[nodiscard]] virtual bool quiet() const noexcept = 0;
};

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  boost::asio::io_context io;
  BlockPool blocks;
  Slabs streams;
  Deadlines deadlines;
  PipePool pipes;
  Gather gather;
  std::array<char, 4096> small_message;  // scratch of Stream::write()

  // A socket that connect() opens and that gets this number or a higher one is given up as if
  // descriptors had run out; `free_descriptors` closes what is idle and says whether that helped.
  int descriptors = std::numeric_limits<int>::max();
  std::function<bool()> free_descriptors;

  // Steady time of the event being handled; refresh() before work that measures.
  [[nodiscard]] std::uint64_t now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] Milliseconds now() const noexcept { return now_ns_ / 1'000'000; }
  std::uint64_t refresh() noexcept {
    now_ns_ = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::steady_clock::now().time_since_epoch())
                                             .count());
    return now_ns_;
  }

  // Starts the deadline tick; `every_tick(delay_ns)` is told how late the tick came.
  void start_ticking(std::function<void(std::uint64_t delay_ns)> every_tick);
  void stop_ticking();

  void bury(std::unique_ptr<Mortal> dead);

  // --- for Stream only ---
  // Reads of one turn are begun together at its end: by then the answer is often there, and the
  // read that Asio tries first succeeds (docs/adr/0001).
  void read_at_end_of_turn(Stream& stream);
  // An idle connection is watched from the end of the next turn on: under load it is in use again
  // by then, and the try would be wasted.
  void watch_after_next_turn(Stream& stream);
  void try_at_end_of_turn(Stream& stream);
  void lent(Stream& stream) { lent_.push_back(&stream); }
  void forget(Stream& stream) noexcept;  // before a stream is destroyed
  // Around the handling of a stream's event. When events come one at a time the turn ends with each
  // of them: the look at the reactor that a posted end comes behind would find nothing.
  void begin_event() noexcept { in_event_ = true; }
  void end_event();  // may destroy streams
  void want_end_of_turn();

 private:
  void posted_end_of_turn();
  void end_of_turn();
  void post_end_of_turn();
  void try_streams();
  void read_streams();
  void watch_streams();
  void pause();
  void reclaim_blocks();
  void bury_the_quiet();
  void tick();

  std::uint64_t now_ns_ = 0;
  bool end_of_turn_wanted_ = false;
  bool end_of_turn_posted_ = false;
  bool ending_turn_ = false;
  bool in_event_ = false;
  bool paused_ = false;            // since the last end of a turn
  std::uint32_t events_ = 0;       // of this turn
  std::uint32_t ended_alone_ = 0;  // turns ended by their event since one was posted
  float events_in_turn_ = 16;      // what posted turns had, on average; many until it is known
  std::vector<Stream*> to_read_, reading_now_;
  std::vector<Stream*> to_try_, trying_now_;
  std::vector<Stream*> watch_now_, watch_next_;
  std::vector<Stream*> lent_;
  std::vector<std::unique_ptr<Mortal>> dead_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point tick_due_;
  std::function<void(std::uint64_t)> every_tick_;
  bool ticking_ = false;
  std::uint32_t ticks_ = 0;
};

}  // namespace clockwise::io
