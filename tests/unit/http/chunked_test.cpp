#include "http/chunked.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clockwise::http {
namespace {

struct Decoded {
  ChunkedDecoder::State state = ChunkedDecoder::State::more;
  std::string data;
  std::size_t consumed = 0;

  bool operator==(const Decoded&) const = default;
};

// Feeds pieces of at most `piece` octets.
Decoded decode(std::string_view input, std::size_t piece) {
  ChunkedDecoder decoder;
  Decoded result;
  while (result.consumed < input.size() && result.state == ChunkedDecoder::State::more) {
    const auto step = decoder.step(input.substr(result.consumed, piece));
    result.state = step.state;
    result.data += step.data;
    result.consumed += step.consumed;
  }
  EXPECT_EQ(decoder.error().empty(), result.state != ChunkedDecoder::State::bad);
  return result;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

struct Row {
  const char* name;
  std::string input;
  bool good;
};

std::vector<Row> rows() {
  using namespace std::string_literals;
  const auto sized = [](const std::string& line) { return line + "\r\nhello\r\n0\r\n\r\n"; };
  const auto trailed = [](const std::string& lines) {
    return "5\r\nhello\r\n0\r\n" + lines + "\r\n";
  };
  return {
      // RFC 9112 7.1: sizes
      {"one chunk", sized("5"), true},
      {"leading zeros", sized("0000000000000005"), true},
      {"several zeros end it", "5\r\nhello\r\n000\r\n\r\n", true},
      {"17 digits", sized("00000000000000005"), false},
      {"2^64 + 5", sized("10000000000000005"), false},
      {"2^64 - 1", sized("ffffffffffffffff"), false},
      {"2^63", sized("8000000000000000"), false},
      {"0x5", sized("0x5"), false},
      {"-5", sized("-5"), false},
      {"+5", sized("+5"), false},
      {"5_0", sized("5_0"), false},
      {"5.0", sized("5.0"), false},
      {"g", sized("g"), false},
      {"empty size", sized(""), false},
      {"blank before the size", sized(" 5"), false},
      {"blank after the size", sized("5 "), false},
      {"HTAB after the size", sized("5\t"), false},
      {"bare LF after the size", "5\nhello\r\n0\r\n\r\n", false},
      {"bare CR after the size", "5\rhello\r\n0\r\n\r\n", false},
      {"two CR", "5\r\r\nhello\r\n0\r\n\r\n", false},
      {"NUL after the size", sized("5\0"s), false},
      // data
      {"bare CR after the data", "5\r\nhello\r0\r\n\r\n", false},
      {"bare LF after the data", "5\r\nhello\n0\r\n\r\n", false},
      {"nothing after the data", "5\r\nhello0\r\n\r\n", false},
      {"other octets after the data", "5\r\nhelloXX0\r\n\r\n", false},
      {"data longer than its size", "3\r\nhello\r\n0\r\n\r\n", false},
      // RFC 9112 7.1.1: extensions
      {"name", sized("5;a"), true},
      {"name and value", sized("5;a=b"), true},
      {"quoted value", sized("5;a=b;c=\"d e\""), true},
      {"quoted delimiters", sized("5;a=\";\\\"x\\\\\\;\""), true},
      {"blanks where the grammar has them", sized("5 \t;\t a = b ; c = \"d\" ;e"), true},
      {"extension of the last chunk", "5\r\nhello\r\n0;a=b\r\n\r\n", true},
      {"no name", sized("5;"), false},
      {"no name, two", sized("5;;a"), false},
      {"no value", sized("5;a="), false},
      {"trailing blank", sized("5;a "), false},
      {"name of delimiters", sized("5;(a)"), false},
      {"bare CR in a name", sized("5;a\rb"), false},
      {"bare LF in place of a name", sized("5;\nxx"), false},
      {"bare LF in a name", sized("5;a\nb"), false},
      {"bare LF in a quoted value", sized("5;a=\"\n\""), false},
      {"CRLF in a quoted value", sized("5;a=\"\r\n\""), false},
      {"NUL in a quoted value", sized("5;a=\"\0\""s), false},
      {"NUL escaped", sized("5;a=\"\\\0\""s), false},
      {"LF escaped", sized("5;a=\"\\\n\""), false},
      {"text after a quoted value", sized("5;a=\"b\"c"), false},
      {"extension of 4000 octets", sized("5;a=" + std::string(4000, 'x')), true},
      {"extension of 5000 octets", sized("5;a=" + std::string(5000, 'x')), false},
      {"extensions, all together", repeated("1;" + std::string(100, 'x') + "\r\na\r\n", 60), false},
      // RFC 9112 7.1.2: trailers
      {"trailer", trailed("X-Trail: v\r\n"), true},
      {"empty trailer", trailed("X-Trail:\r\n"), true},
      {"trailer that names framing is dropped", trailed("Content-Length: 9\r\nHost: x\r\n"), true},
      {"100 trailers", trailed(repeated("A: b\r\n", 100)), true},
      {"101 trailers", trailed(repeated("A: b\r\n", 101)), false},
      {"long trailer", trailed("A: " + std::string(33 * 1024, 'b') + "\r\n"), false},
      {"request in place of the end", trailed("GET / HTTP/1.1\r\nHost: h\r\n"), false},
      {"trailer without colon", trailed("abc\r\n"), false},
      {"trailer without name", trailed(": v\r\n"), false},
      {"blank before the colon", trailed("A : v\r\n"), false},
      {"folded trailer", trailed("A: v\r\n w\r\n"), false},
      {"bare LF", trailed("A: v\n"), false},
      {"bare CR", trailed("A: v\rB: w\r\n"), false},
      {"NUL", trailed("A: v\0\r\n"s), false},
      {"last CR without LF", "5\r\nhello\r\n0\r\n\rX", false},
  };
}

TEST(ChunkedDecoder, AcceptsAndRefuses) {
  for (const Row& row : rows()) {
    const Decoded whole = decode(row.input, row.input.size());
    if (row.good) {
      EXPECT_EQ(whole.state, ChunkedDecoder::State::done) << row.name;
      EXPECT_EQ(whole.data, "hello") << row.name;
      EXPECT_EQ(whole.consumed, row.input.size()) << row.name;
    } else {
      EXPECT_EQ(whole.state, ChunkedDecoder::State::bad) << row.name;
    }
  }
}

TEST(ChunkedDecoder, EverySplitGivesTheSameAnswer) {
  for (const Row& row : rows()) {
    const Decoded whole = decode(row.input, row.input.size());
    for (std::size_t piece = 1; piece < 12; ++piece) {
      EXPECT_EQ(decode(row.input, piece), whole) << row.name << " in pieces of " << piece;
    }
  }
}

TEST(ChunkedDecoder, LeavesTheNextMessageAlone) {
  const std::string input = "3\r\nabc\r\n0\r\n\r\nGET /";
  const Decoded result = decode(input, input.size());
  EXPECT_EQ(result.state, ChunkedDecoder::State::done);
  EXPECT_EQ(input.substr(result.consumed), "GET /");
}

TEST(ChunkedDecoder, StaysWhereItEnded) {
  ChunkedDecoder decoder;
  ASSERT_EQ(decoder.step("0\r\n\r\n").state, ChunkedDecoder::State::done);
  EXPECT_EQ(decoder.step("5\r\n").consumed, 0U);
  ChunkedDecoder bad;
  ASSERT_EQ(bad.step("x").state, ChunkedDecoder::State::bad);
  EXPECT_EQ(bad.step("5\r\n").state, ChunkedDecoder::State::bad);
}

}  // namespace
}  // namespace clockwise::http
