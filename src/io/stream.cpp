#include "io/stream.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "io/handler_memory.h"

namespace clockwise::io {

namespace asio = boost::asio;

void Stream::read_soon() {
  watch_wanted_ = false;
  if (reading_ || read_queued_ || closed_) return;
  read_queued_ = true;
  loop_.read_at_end_of_turn(*this);
}

void Stream::watch_idle() {
  if (reading_ || read_queued_ || closed_) return;
  watch_wanted_ = true;
  if (watch_queued_) return;
  watch_queued_ = true;
  loop_.watch_after_next_turn(*this);
}

void Stream::readable_soon() {
  if (try_queued_ || closed_) return;
  try_queued_ = true;
  loop_.try_at_end_of_turn(*this);
}

void Stream::release_empty_block() {
  if (!in_.empty() || !in_.has_block()) return;
  if (!reading_) return in_.release();
  if (block_is_lent_) return;
  block_is_lent_ = true;
  loop_.lent(*this);
}

namespace {

error_code last_error() { return {errno, boost::system::system_category()}; }

class SocketStream final : public Stream, public InSlabs {
 public:
  // The executor type is named so that operations are not type-erased.
  using Socket =
      asio::basic_stream_socket<asio::generic::stream_protocol, asio::io_context::executor_type>;

  SocketStream(Loop& loop, Owner& owner) : Stream(loop), owner_(owner), socket_(loop.io) {}

  SocketStream(Loop& loop, Owner& owner, int family, int descriptor)
      : Stream(loop),
        owner_(owner),
        socket_(loop.io, asio::generic::stream_protocol(family, 0), descriptor) {}

  ~SocketStream() override { loop_.forget(*this); }

  bool has_news() noexcept override {
    char octet;
    const ssize_t n = ::recv(socket_.native_handle(), &octet, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EINTR);
  }

  Written write(std::span<const iovec> pieces) noexcept override {
    ssize_t n;
    do {
      n = send(pieces);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) return {static_cast<std::size_t>(n), {}};
    if (errno == EAGAIN) return {0, {}};
    return {0, last_error()};
  }

  void wait_writable() override {
    ++operations_;
    waiting_to_write_ = write_waited_ = true;
    socket_.async_wait(Socket::wait_write, [this](const error_code& error) {
      handle([&] {
        waiting_to_write_ = false;
        if (finished()) owner_.on_writable(error);
      });
    });
  }

  std::size_t unsent() const noexcept override {
    int octets = 0;
    if (::ioctl(const_cast<Socket&>(socket_).native_handle(), SIOCOUTQ, &octets) != 0) return 0;
    return static_cast<std::size_t>(octets);
  }

  void wait_readable() override {
    ++operations_;
    socket_.async_wait(Socket::wait_read, [this](const error_code& error) {
      handle([&] {
        if (finished()) owner_.on_readable(error);
      });
    });
  }

  int splice_handle() const noexcept override {
    return const_cast<Socket&>(socket_).native_handle();
  }

  void connect(const Endpoint& endpoint) override {
    ++operations_;
    closed_ = false;
    error_code error = open(endpoint);
    if (error == asio::error::no_descriptors && loop_.free_descriptors && loop_.free_descriptors())
      error = open(endpoint);
    const auto connected = [this](const error_code& result) {
      handle([&] {
        if (finished()) owner_.on_connected(result);
      });
    };
    if (error) return asio::post(loop_.io, [connected, error] { connected(error); });
    socket_.async_connect(endpoint, connected);
  }

  void no_delay() noexcept override {
    // Fails on a unix socket, which needs none.
    const int on = 1;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  void shutdown_send() noexcept override {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  void close() noexcept override {
    closed_ = true;
    watch_wanted_ = false;
    error_code ignored;
    socket_.close(ignored);
  }

  void reset() noexcept override {
    error_code ignored;
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    close();
  }

 private:
  using Memory = HandlerMemory<192>;
  static constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

  // A few small pieces are cheaper moved together here than gathered by the kernel.
  ssize_t send(std::span<const iovec> pieces) noexcept {
    const int socket = socket_.native_handle();
    std::size_t size = 0;
    for (const iovec& piece : pieces) size += piece.iov_len;
    if (size > loop_.small_message.size()) {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(pieces.data());
      message.msg_iovlen = pieces.size();
      return ::sendmsg(socket, &message, kFlags);
    }
    if (pieces.size() == 1) return ::send(socket, pieces[0].iov_base, size, kFlags);
    char* to = loop_.small_message.data();
    for (const iovec& piece : pieces) {
      std::memcpy(to, piece.iov_base, piece.iov_len);
      to += piece.iov_len;
    }
    return ::send(socket, loop_.small_message.data(), size, kFlags);
  }

  // Asks for its memory only when a read is really tried, so that a connection that waits owns
  // none.
  class LentBlock {
   public:
    using value_type = asio::mutable_buffer;
    explicit LentBlock(SocketStream& stream) noexcept : stream_(&stream) {}
    [[nodiscard]] const asio::mutable_buffer* begin() const {
      stream_->window_ = {stream_->in_.tail(), stream_->in_.room()};
      return &stream_->window_;
    }
    [[nodiscard]] const asio::mutable_buffer* end() const noexcept { return &stream_->window_ + 1; }

   private:
    SocketStream* stream_;
  };

  struct ReadHandler {
    using allocator_type = HandlerAllocator<void, Memory>;
    SocketStream* stream;
    [[nodiscard]] HandlerAllocator<char, Memory> get_allocator() const noexcept {
      return HandlerAllocator<char, Memory>(stream->read_memory_);
    }
    void operator()(const error_code& error, std::size_t n) const {
      stream->handle([&] { stream->on_read(error, n); });
    }
  };

  error_code open(const Endpoint& endpoint) noexcept {
    error_code error;
    socket_.open(endpoint.protocol(), error);
    if (error || socket_.native_handle() < loop_.descriptors) return error;
    error_code ignored;
    socket_.close(ignored);
    return asio::error::no_descriptors;
  }

  // The end of the turn may come with the event, and this stream's with it.
  template <class Tell>
  void handle(Tell tell) {
    Loop& loop = loop_;
    loop.begin_event();
    tell();
    loop.end_event();
  }

  void tell_readable() override { owner_.on_readable({}); }

  void start_read() override {
    ++operations_;
    reading_ = true;
    write_waited_ = waiting_to_write_;
    if (ended_) {
      // Asio would wait for an edge that never comes again.
      return asio::post(loop_.io, [this] { handle([this] { on_read(asio::error::eof, 0); }); });
    }
    socket_.async_read_some(LentBlock(*this), ReadHandler{this});
    if (in_.empty() && in_.has_block() && !block_is_lent_) {
      block_is_lent_ = true;
      loop_.lent(*this);
    }
  }

  void on_read(const error_code& error, std::size_t n) {
    reading_ = false;
    ended_ = error == asio::error::eof;
    drained_ = n < window_.size();
    // The block went back to the pool between the read and this event: the octets are lost. Cannot
    // happen while handlers run in the order they were queued (Loop::reclaim_blocks).
    const bool lost = n > 0 && !in_.has_block();
    if (n > 0 && !lost) in_.commit(static_cast<const char*>(window_.data()), n);
    if (in_.empty()) in_.release();
    if (!finished()) return;
    owner_.on_read(lost ? error_code(asio::error::no_buffer_space) : error, lost ? 0 : n);
  }

  // One handler less to come; false when the stream was closed meanwhile and nobody must be told.
  bool finished() noexcept {
    --operations_;
    if (!closed_) return true;
    loop_.want_end_of_turn();  // someone may wait to be buried
    return false;
  }

  Owner& owner_;
  Socket socket_;
  asio::mutable_buffer window_;
  Memory read_memory_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(Loop& loop, Stream::Owner& owner, int family, int descriptor) {
  return std::unique_ptr<Stream>(new (loop.streams) SocketStream(loop, owner, family, descriptor));
}

std::unique_ptr<Stream> make_stream(Loop& loop, Stream::Owner& owner) {
  return std::unique_ptr<Stream>(new (loop.streams) SocketStream(loop, owner));
}

std::size_t stream_size() noexcept { return sizeof(SocketStream); }

}  // namespace clockwise::io
