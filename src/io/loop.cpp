#include "io/loop.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <ctime>

#include "io/handler_memory.h"
#include "io/stream.h"

namespace clockwise::io {

namespace asio = boost::asio;

namespace {

constexpr std::uint32_t kTicksToSettle = 1'000 / Deadlines::kTick;

}  // namespace

// Sockets and timers are touched by one thread at a time, so they need no locks of their own; what
// other threads post is still taken under one.
Loop::Loop() : io(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO), streams(stream_size()), timer_(io) {
  refresh();
  deadlines.start(now());
}

Loop::~Loop() {
  // What still lives must end before the io_context does; its handlers never run.
  dead_.clear();
}

void Loop::read_at_end_of_turn(Stream& stream) {
  to_read_.push_back(&stream);
  want_end_of_turn();
}

void Loop::try_at_end_of_turn(Stream& stream) {
  to_try_.push_back(&stream);
  want_end_of_turn();
}

void Loop::watch_after_next_turn(Stream& stream) {
  watch_next_.push_back(&stream);
  want_end_of_turn();
}

void Loop::bury(std::unique_ptr<Mortal> dead) {
  dead_.push_back(std::move(dead));
  want_end_of_turn();
}

void Loop::want_end_of_turn() {
  end_of_turn_wanted_ = true;
  if (!in_event_ && !ending_turn_) post_end_of_turn();
}

void Loop::end_event() {
  // How many events come together is only seen in turns whose end is posted.
  constexpr std::uint32_t kUnseen = 32;
  constexpr float kFew = 1.5F;
  in_event_ = false;
  ++events_;
  if (!end_of_turn_wanted_ || end_of_turn_posted_) return;
  if (events_in_turn_ > kFew || ended_alone_ == kUnseen || paused_) return post_end_of_turn();
  ++ended_alone_;
  events_ = 0;
  end_of_turn();
}

// Queued behind every event of this turn. What is wanted while a turn ends comes behind the reads
// that are begun there: those that are answered at once are handled before the next end.
void Loop::post_end_of_turn() {
  if (std::exchange(end_of_turn_posted_, true)) return;
  asio::post(io, [this] { posted_end_of_turn(); });
}

void Loop::posted_end_of_turn() {
  end_of_turn_posted_ = false;
  // What came during the pause is queued behind this end, and belongs to the turn.
  if (std::exchange(paused_, false)) return post_end_of_turn();
  if (events_ > 0) events_in_turn_ += (static_cast<float>(events_) - events_in_turn_) / 8;
  events_ = ended_alone_ = 0;
  reclaim_blocks();
  end_of_turn();
}

// Tries come first: most of them write, and then want to read.
void Loop::end_of_turn() {
  ending_turn_ = true;
  try_streams();
  // A loop with little to do is about to sleep: waiting another turn would only cost a look at the
  // reactor.
  constexpr std::size_t kFewReads = 2;
  const bool few = to_read_.size() <= kFewReads;
  read_streams();
  watch_streams();
  watch_now_.swap(watch_next_);
  if (few) watch_streams();
  // What else the tries asked for is done by now.
  end_of_turn_wanted_ = !to_try_.empty() || !to_read_.empty() || !watch_now_.empty();
  bury_the_quiet();
  ending_turn_ = false;
  if (end_of_turn_wanted_) post_end_of_turn();
  pause();
}

void Loop::pause() {
  const std::uint64_t ns = gather.pause_ns();
  if (ns == 0) return;
  const timespec time{0, static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
  paused_ = true;
}

void Loop::try_streams() {
  trying_now_.swap(to_try_);
  for (Stream* stream : trying_now_) {
    stream->try_queued_ = false;
    if (!stream->closed_) stream->tell_readable();
  }
  trying_now_.clear();
}

void Loop::read_streams() {
  reading_now_.swap(to_read_);
  for (Stream* stream : reading_now_) {
    stream->read_queued_ = false;
    if (!stream->closed_) stream->start_read();
  }
  reading_now_.clear();
}

void Loop::watch_streams() {
  for (Stream* stream : watch_now_) {
    stream->watch_queued_ = false;
    if (stream->watch_wanted_ && !stream->closed_ && !stream->reading_ && !stream->read_queued_) {
      stream->start_read();
    }
  }
  watch_now_.clear();
}

// Reads begun at the end of the last turn and not answered since are waiting: their empty blocks go
// back. Those that were answered at once have been handled by now, since their events were queued
// before this one. Only where a write was waited for too, Asio may have filled the block and queued
// the event behind this one: the events of one descriptor are not queued together.
void Loop::reclaim_blocks() {
  for (Stream* stream : lent_) {
    if (stream == nullptr) continue;
    stream->block_is_lent_ = false;
    if (stream->reading_ && stream->in_.empty() && !stream->write_waited_) stream->in_.release();
  }
  lent_.clear();
}

void Loop::bury_the_quiet() {
  // Destructors may bury others; those wait for the next turn.
  auto dead = std::exchange(dead_, {});
  std::erase_if(dead, [](const auto& d) { return d->quiet(); });
  for (auto& d : dead) dead_.push_back(std::move(d));
}

void Loop::forget(Stream& stream) noexcept {
  const auto drop = [&](std::vector<Stream*>& list) {
    std::replace(list.begin(), list.end(), &stream, static_cast<Stream*>(nullptr));
    std::erase(list, nullptr);
  };
  if (stream.read_queued_) drop(to_read_);
  if (stream.try_queued_) drop(to_try_);
  if (stream.watch_queued_) {
    drop(watch_now_);
    drop(watch_next_);
  }
  if (stream.block_is_lent_)
    std::replace(lent_.begin(), lent_.end(), &stream, static_cast<Stream*>(nullptr));
}

void Loop::start_ticking(std::function<void(std::uint64_t)> every_tick) {
  every_tick_ = std::move(every_tick);
  ticking_ = true;
  tick_due_ = std::chrono::steady_clock::now();
  tick();
}

void Loop::stop_ticking() {
  // A tick that is due already cannot be cancelled; it must not begin another.
  ticking_ = false;
  timer_.cancel();
}

void Loop::tick() {
  tick_due_ = std::max(tick_due_, std::chrono::steady_clock::now() - std::chrono::seconds(1)) +
              std::chrono::milliseconds(Deadlines::kTick);
  timer_.expires_at(tick_due_);
  timer_.async_wait([this](const error_code& error) {
    if (error || !ticking_) return;
    refresh();
    const auto late = std::chrono::nanoseconds(now_ns_) - tick_due_.time_since_epoch();
    every_tick_(late.count() > 0 ? static_cast<std::uint64_t>(late.count()) : 0);
    deadlines.advance(now());
    if (++ticks_ % kTicksToSettle == 0) blocks.settle();
    want_end_of_turn();
    if (ticking_) tick();
  });
}

}  // namespace clockwise::io
