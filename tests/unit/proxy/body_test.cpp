#include "proxy/body.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace clockwise::proxy {
namespace {

using http::Body;
using http::BodyKind;
using State = BodyReader::State;

// Feeds `wire` in pieces of `step` octets, as reads of a socket would bring it; unread octets stay
// in the buffer as they do in the proxy.
struct Fed {
  State state;
  std::string content;
  std::string left;
};
Fed feed(Body body, const std::string& wire, std::size_t step) {
  BodyReader reader;
  reader.reset(body);
  Fed fed{reader.state(), {}, {}};
  std::string buffer;
  for (std::size_t at = 0; at < wire.size(); at += step) {
    buffer += wire.substr(at, step);
    const auto part = reader.read(buffer.data(), buffer.size());
    fed.content += part.data;
    fed.state = part.state;
    buffer.erase(0, part.consumed);
  }
  fed.left = buffer;
  return fed;
}

TEST(BodyReader, TakesAsManyOctetsAsTheLengthSays) {
  for (const std::size_t step : {1u, 3u, 100u}) {
    const Fed fed = feed({BodyKind::length, 5}, "helloGET / HTTP/1.1", step);
    EXPECT_EQ(fed.state, State::done);
    EXPECT_EQ(fed.content, "hello");
    EXPECT_EQ(fed.left, "GET / HTTP/1.1");
  }
}

TEST(BodyReader, NothingIsDoneAtOnce) {
  EXPECT_EQ(feed({BodyKind::none, 0}, "rest", 4).left, "rest");
  EXPECT_EQ(feed({BodyKind::length, 0}, "rest", 4).left, "rest");
}

TEST(BodyReader, ChunksAreMovedTogether) {
  const std::string wire = "5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\nX: y\r\n\r\nNEXT";
  for (std::size_t step = 1; step <= wire.size(); ++step) {
    const Fed fed = feed({BodyKind::chunked, 0}, wire, step);
    EXPECT_EQ(fed.state, State::done) << step;
    EXPECT_EQ(fed.content, "hello world") << step;
    EXPECT_EQ(fed.left, "NEXT") << step;
  }
}

TEST(BodyReader, BadChunksStayBad) {
  EXPECT_EQ(feed({BodyKind::chunked, 0}, "zz\r\nhello", 100).state, State::bad);
  EXPECT_EQ(feed({BodyKind::chunked, 0}, "zz\r\nhello", 1).state, State::bad);
}

TEST(BodyReader, OnlyACloseDelimitedBodyEndsWithTheStream) {
  BodyReader reader;
  reader.reset({BodyKind::until_close, 0});
  EXPECT_TRUE(reader.end_of_stream());
  reader.reset({BodyKind::length, 3});
  EXPECT_FALSE(reader.end_of_stream());
  reader.reset({BodyKind::chunked, 0});
  EXPECT_FALSE(reader.end_of_stream());
}

TEST(BodyReader, SplicedOctetsCount) {
  BodyReader reader;
  reader.reset({BodyKind::length, 10});
  EXPECT_EQ(reader.spliceable(), 10u);
  reader.spliced(7);
  EXPECT_EQ(reader.spliceable(), 3u);
  reader.spliced(3);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.octets(), 10u);
}

RC_GTEST_PROP(BodyWriter, WhatItFramesIsReadBack, (const std::string& content)) {
  BodyWriter writer;
  writer.reset(BodyKind::chunked);
  std::string wire;
  for (std::size_t at = 0; at < content.size(); at += 7) {
    const std::string piece = content.substr(at, 7);
    const bool last = at + 7 >= content.size();
    wire.append(writer.before(piece.size())).append(piece).append(writer.after(piece.size(), last));
  }
  if (content.empty()) wire.append(writer.after(0, true));
  const Fed fed = feed({BodyKind::chunked, 0}, wire, wire.size());
  RC_ASSERT(fed.state == State::done);
  RC_ASSERT(fed.content == content);
  RC_ASSERT(fed.left.empty());
}

TEST(BodyWriter, OtherFramingAddsNothing) {
  BodyWriter writer;
  writer.reset(BodyKind::length);
  EXPECT_EQ(writer.before(5), "");
  EXPECT_EQ(writer.after(5, true), "");
}

}  // namespace
}  // namespace clockwise::proxy
