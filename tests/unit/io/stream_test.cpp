#include "io/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/error.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace clockwise::io {
namespace {

// Runs what is ready now.
void run(Loop& loop) {
  loop.io.restart();
  loop.io.poll();
}

// One end of a pair of sockets as a stream, the other one in the hand of the test.
class Peer final : public Stream::Owner {
 public:
  explicit Peer(Loop& loop) : loop_(loop) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
    far_ = pair[1];
    stream = make_stream(loop, *this, AF_UNIX, pair[0]);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    if (stream) stream->close();
    run(loop_);  // its operations end before it does
    EXPECT_TRUE(!stream || stream->quiet());
    ::close(far_);
  }

  void send(std::string_view text) const {
    EXPECT_EQ(::send(far_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  void end() const { ::shutdown(far_, SHUT_WR); }
  // Fills the socket, so that a write has to wait until drain().
  void fill() const {
    const std::array<char, 4096> block{};
    const iovec piece{const_cast<char*>(block.data()), block.size()};
    while (stream->write({&piece, 1}).size > 0) {
    }
  }
  void drain() const {
    std::array<char, 65536> block;
    while (::recv(far_, block.data(), block.size(), 0) > 0) {
    }
  }

  std::unique_ptr<Stream> stream;
  std::function<void()> when_read;
  std::string received;
  int ends = 0;
  int errors = 0;
  int writable = 0;

 private:
  void on_read(const error_code& error, std::size_t) override {
    ends += error == boost::asio::error::eof ? 1 : 0;
    errors += error && error != boost::asio::error::eof ? 1 : 0;
    received.append(stream->in().view());
    stream->in().clear();
    if (when_read) when_read();
  }
  void on_readable(const error_code&) override {}
  void on_writable(const error_code&) override { ++writable; }
  void on_connected(const error_code&) override {}

  Loop& loop_;
  int far_ = -1;
};

class Grave final : public Mortal {
 public:
  Grave(std::unique_ptr<Stream> stream, bool& is_gone)
      : stream_(std::move(stream)), gone_(is_gone) {}
  ~Grave() override { gone_ = true; }
  [[nodiscard]] bool quiet() const noexcept override { return stream_->quiet(); }

 private:
  std::unique_ptr<Stream> stream_;
  bool& gone_;
};

// So many events that the turn ends with each of them.
void let_events_come_alone(Loop& loop, Peer& peer) {
  for (int i = 0; i < 100; ++i) {
    peer.stream->read_soon();
    run(loop);
    peer.send(std::to_string(i));
    run(loop);
  }
}

TEST(Stream, NothingIsLostWhenEventsComeAlone) {
  Loop loop;
  Peer peer(loop);
  let_events_come_alone(loop, peer);
  std::string sent;
  for (int i = 0; i < 100; ++i) sent += std::to_string(i);
  EXPECT_EQ(peer.received, sent);
  // And what another one's event asked for at the end of its turn is there.
  Peer other(loop);
  other.when_read = [&] { peer.stream->read_soon(); };
  peer.received.clear();
  peer.send("later");
  other.stream->read_soon();
  other.send("x");
  run(loop);
  EXPECT_EQ(peer.received, "later");
}

TEST(Stream, MayBeDestroyedAtTheEndOfItsOwnEvent) {
  Loop loop;
  Peer peer(loop);
  let_events_come_alone(loop, peer);
  bool gone = false;
  peer.when_read = [&] {
    peer.stream->close();
    loop.bury(std::make_unique<Grave>(std::move(peer.stream), gone));
  };
  peer.stream->read_soon();
  run(loop);
  peer.send("x");
  run(loop);
  EXPECT_TRUE(gone);
}

TEST(Stream, TheEndIsToldToEachReadAfterIt) {
  Loop loop;
  Peer peer(loop);
  peer.end();
  for (int reads = 1; reads <= 3; ++reads) {
    peer.stream->read_soon();
    run(loop);
    EXPECT_EQ(peer.ends, reads);
  }
}

TEST(Stream, KnowsWhetherItTookAllThereWas) {
  Loop loop;
  Peer peer(loop);
  const auto drained_after = [&](std::size_t size) {
    peer.stream->read_soon();
    peer.send(std::string(size, 'x'));
    run(loop);
    return peer.stream->drained();
  };
  EXPECT_TRUE(drained_after(1));
  EXPECT_FALSE(drained_after(BlockPool::kBlockSize)) << "there may be more";
  EXPECT_TRUE(drained_after(BlockPool::kBlockSize - 1));
  peer.stream->read_beside();
  EXPECT_FALSE(peer.stream->drained());
}

TEST(Stream, NothingIsLostWhenAReadAndAWriteBecomeReadyTogether) {
  Loop loop;
  Peer first(loop);
  Peer both(loop);
  // Another stream's event, handled before, asks for the end of the turn; there the empty block of
  // an unanswered read goes back.
  first.when_read = [&] { loop.want_end_of_turn(); };
  first.stream->read_soon();
  both.fill();
  both.stream->wait_writable();
  both.stream->read_soon();
  run(loop);

  first.send("x");
  both.send("answer");
  both.drain();
  run(loop);
  EXPECT_EQ(both.writable, 1);
  EXPECT_EQ(both.received, "answer");
  EXPECT_EQ(both.errors, 0);
}

TEST(Stream, AnEmptyBlockGoesBackWhileAReadWaits) {
  Loop loop;
  Peer peer(loop);
  peer.stream->read_soon();
  run(loop);
  EXPECT_TRUE(peer.stream->reading());
  loop.want_end_of_turn();
  run(loop);
  EXPECT_FALSE(peer.stream->in().has_block());
  peer.send("later");
  run(loop);
  EXPECT_EQ(peer.received, "later");
}

}  // namespace
}  // namespace clockwise::io
