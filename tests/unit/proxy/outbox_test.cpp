#include "proxy/outbox.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace clockwise::proxy {
namespace {

// A socket that takes a given number of octets a call.
class SlowStream final : public io::Stream {
 public:
  SlowStream(io::Loop& loop, std::vector<std::size_t> takes)
      : Stream(loop), takes_(std::move(takes)) {}

  Written write(std::span<const iovec> pieces) noexcept override {
    std::size_t room = call_ < takes_.size() ? takes_[call_++] : ~std::size_t{0};
    Written written;
    for (const iovec& piece : pieces) {
      const std::size_t n = std::min(room, piece.iov_len);
      got.append(static_cast<const char*>(piece.iov_base), n);
      written.size += n;
      room -= n;
    }
    return written;
  }
  bool has_news() noexcept override { return false; }
  void wait_writable() override {}
  std::size_t unsent() const noexcept override { return 0; }
  void wait_readable() override {}
  int splice_handle() const noexcept override { return -1; }
  void connect(const io::Endpoint&) override {}
  void no_delay() noexcept override {}
  void shutdown_send() noexcept override {}
  void close() noexcept override {}
  void reset() noexcept override {}

  std::string got;

 private:
  void start_read() override {}
  void tell_readable() override {}
  std::vector<std::size_t> takes_;
  std::size_t call_ = 0;
};

RC_GTEST_PROP(Outbox, EveryOctetGoesOutOnceAndInOrder,
              (const std::vector<std::string>& passing, const std::string& content)) {
  RC_PRE(passing.size() < 40u);
  io::Loop loop;
  auto takes = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 20));
  SlowStream stream(loop, takes);
  Outbox outbox;
  Pieces pieces;
  pieces.clear();
  std::string expected;
  std::vector<std::string> scratch = passing;
  for (const std::string& text : scratch) {
    pieces.passing(text);
    expected += text;
  }
  pieces.staying(content);
  pieces.staying("\r\n");
  expected += content + "\r\n";
  auto result = outbox.send(stream, pieces);
  for (std::string& text : scratch) text.assign(text.size(), '?');  // passing text is gone now
  std::size_t rounds = 0;
  while (result == Outbox::Result::blocked && ++rounds < 1000) result = outbox.flush(stream);
  RC_ASSERT(result == Outbox::Result::sent);
  RC_ASSERT(outbox.empty());
  RC_ASSERT(stream.got == expected);
  RC_ASSERT(outbox.take_octets() == expected.size());
}

TEST(Outbox, ASecondWriteWaitsBehindTheFirst) {
  io::Loop loop;
  SlowStream stream(loop, {4});
  Outbox outbox;
  Pieces pieces;
  pieces.clear();
  pieces.passing("HTTP/1.1 103 Early Hints\r\n\r\n");
  EXPECT_EQ(outbox.send(stream, pieces), Outbox::Result::blocked);
  pieces.clear();
  pieces.passing("HTTP/1.1 200 OK\r\n\r\n");
  pieces.staying("body");
  EXPECT_EQ(outbox.send(stream, pieces), Outbox::Result::blocked);
  EXPECT_EQ(outbox.flush(stream), Outbox::Result::sent);
  EXPECT_EQ(stream.got, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody");
}

}  // namespace
}  // namespace clockwise::proxy
