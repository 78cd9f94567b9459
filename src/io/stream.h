// A connected byte stream as the request path sees it: plain TCP, a unix socket, later TLS.
//
// One owner, one thread. Reads are asked for and answered by an event; writes are tried at once and
// only waited for when the socket is full. Request handling is written against this interface and
// is never a template on the stream type.
#pragma once

#include <sys/uio.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>

#include "io/buffer.h"
#include "io/loop.h"

namespace clockwise::io {

using boost::system::error_code;
using Endpoint = boost::asio::generic::stream_protocol::endpoint;

class Stream {
 public:
  class Owner {
   public:
    // `n` octets were appended to in(); or the peer's end (asio::error::eof), or an error. The end
    // is told again to each read that is asked for after it.
    virtual void on_read(const error_code& error, std::size_t n) = 0;
    // The wait of wait_readable() or wait_writable() is over.
    virtual void on_readable(const error_code& error) = 0;
    virtual void on_writable(const error_code& error) = 0;
    virtual void on_connected(const error_code& error) = 0;

   protected:
    ~Owner() = default;
  };

  struct Written {
    std::size_t size = 0;  // octets taken; less than given: the socket is full, or `error`
    error_code error;
  };

  explicit Stream(Loop& loop) noexcept : loop_(loop), in_(loop.blocks) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] Buffer& in() noexcept { return in_; }

  // --- reading ---
  void read_soon();   // one on_read() to come; nothing happens when one is already asked for
  void watch_idle();  // the same, begun a turn later and only if still wanted: see stop_watching()
  void stop_watching() noexcept { watch_wanted_ = false; }
  // Gives the block of an empty buffer back: at once, or, when a read is under way, as soon as it
  // is certain that the read has not used it.
  void release_empty_block();
  [[nodiscard]] bool reading() const noexcept { return reading_ || read_queued_; }
  // Octets may have been read already that nobody was told of: in() must not be moved.
  [[nodiscard]] bool read_begun() const noexcept { return reading_; }
  // The last read took all there was: it had room for more. False as well once octets are taken
  // beside it, which read_beside() tells.
  [[nodiscard]] bool drained() const noexcept { return drained_; }
  void read_beside() noexcept { drained_ = false; }
  // Is something readable, or the peer gone, at this moment? Does not read.
  [[nodiscard]] virtual bool has_news() noexcept = 0;

  // --- writing ---
  [[nodiscard]] virtual Written write(std::span<const iovec> pieces) noexcept = 0;
  virtual void wait_writable() = 0;
  // Octets written that the other side's system has not taken yet.
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;
  virtual void wait_readable() = 0;  // without reading: for splice
  // on_readable() at the end of this turn, whether or not there is something: a sender at full
  // speed has filled the socket again by then, and a wait would cost more than a try.
  void readable_soon();
  // The descriptor for splice(2), or -1 when octets must pass through us (TLS).
  [[nodiscard]] virtual int splice_handle() const noexcept = 0;

  // --- connecting and ending ---
  virtual void connect(const Endpoint& endpoint) = 0;
  virtual void no_delay() noexcept = 0;  // TCP_NODELAY: small pieces go out at once
  virtual void shutdown_send() noexcept = 0;
  virtual void close() noexcept = 0;  // no event comes after this
  virtual void reset() noexcept = 0;  // close() that the peer sees as an error, not as an end
  [[nodiscard]] bool quiet() const noexcept {
    return closed_ && operations_ == 0 && !read_queued_ && !watch_queued_ && !try_queued_;
  }

 protected:
  friend class Loop;
  virtual void start_read() = 0;
  virtual void tell_readable() = 0;

  Loop& loop_;
  Buffer in_;
  bool closed_ = false;
  bool ended_ = false;  // the peer's end was read
  bool drained_ = true;
  bool reading_ = false;       // a read is under way
  bool read_queued_ = false;   // waits for the end of the turn
  bool try_queued_ = false;    // readable_soon() was asked for
  bool watch_queued_ = false;  // in one of the loop's watch lists
  bool watch_wanted_ = false;
  bool waiting_to_write_ = false;
  bool write_waited_ = false;    // at some time since the read under way was begun
  bool block_is_lent_ = false;   // empty block that an unfinished read holds
  std::uint8_t operations_ = 0;  // handlers still to come
};

// A stream on a connected descriptor (accepted; non-blocking), or on none yet (connect()).
[[nodiscard]] std::unique_ptr<Stream> make_stream(Loop& loop, Stream::Owner& owner, int family,
                                                  int descriptor);
[[nodiscard]] std::unique_ptr<Stream> make_stream(Loop& loop, Stream::Owner& owner);
[[nodiscard]] std::size_t stream_size() noexcept;  // of either, for Loop::streams

}  // namespace clockwise::io
