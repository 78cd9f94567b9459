#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http/head.h"
#include "unit/http/splits.h"

namespace clockwise::http {
namespace {

using test::every_octet;
using test::scan_in_pieces;
using test::summary;

Progress scan(std::string_view input, ResponseHead& head, Method method = Method::get,
              const HeadLimits& limits = {}) {
  std::size_t scanned = 0;
  return scan_response(input, limits, method, head, scanned);
}

std::string answer(std::string_view input, const std::vector<std::size_t>& cuts) {
  ResponseHead head;
  const Progress progress =
      scan_in_pieces(input, cuts, [&](std::string_view octets, std::size_t& scanned) {
        head = {};
        return scan_response(octets, {}, Method::get, head, scanned);
      });
  return summary(input, progress, head);
}

std::string with_start(std::string_view start) {
  return std::string(start) + "\r\nContent-Length: 2\r\n\r\n";
}

std::string with_lines(std::string_view lines) {
  return "HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\n\r\n";
}

struct Row {
  const char* name;
  std::string input;
  bool good;
};

std::vector<Row> rows() {
  using namespace std::string_literals;
  return {
      // RFC 9112 4: the status line
      {"plain", with_start("HTTP/1.1 200 OK"), true},
      {"HTTP/1.0", with_start("HTTP/1.0 200 OK"), true},
      {"HTTP/1.2", with_start("HTTP/1.2 200 OK"), true},
      {"empty reason", with_start("HTTP/1.1 200 "), true},
      {"no blank after the status", with_start("HTTP/1.1 200"), true},
      {"reason with 8-bit and HTAB",
       with_start("HTTP/1.1 404 Nicht\tgef\xfc"
                  "nden"),
       true},
      {"unknown status", with_start("HTTP/1.1 599 Odd"), true},
      {"status 600", with_start("HTTP/1.1 600 X"), false},
      {"status 099", with_start("HTTP/1.1 099 X"), false},
      {"status 000", with_start("HTTP/1.1 000 X"), false},
      {"four digits", with_start("HTTP/1.1 2000 OK"), false},
      {"two digits", with_start("HTTP/1.1 20 OK"), false},
      {"letters for a status", with_start("HTTP/1.1 2xx OK"), false},
      {"signed status", with_start("HTTP/1.1 +20 OK"), false},
      {"no status", with_start("HTTP/1.1 OK"), false},
      {"two blanks", with_start("HTTP/1.1  200 OK"), false},
      {"HTAB", with_start("HTTP/1.1\t200 OK"), false},
      {"no blank before the reason", with_start("HTTP/1.1 200OK"), false},
      {"HTTP/2.0", with_start("HTTP/2.0 200 OK"), false},
      {"HTTP/1", with_start("HTTP/1 200 OK"), false},
      {"HTTP/1.10", with_start("HTTP/1.10 200 OK"), false},
      {"lower case", with_start("http/1.1 200 OK"), false},
      {"other protocol", with_start("ICY 200 OK"), false},
      {"garbage", "garbage garbage\r\n\r\n", false},
      {"blank line before", "\r\n" + with_start("HTTP/1.1 200 OK"), false},
      {"control in the reason", with_start("HTTP/1.1 200 O\x01K"), false},
      {"NUL in the reason", with_start("HTTP/1.1 200 O\0K"s), false},
      {"bare CR in the reason", with_start("HTTP/1.1 200 O\rK"), false},
      {"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", false},
      // RFC 9112 5: field lines
      {"no fields", "HTTP/1.1 200 OK\r\n\r\n", true},
      {"folded line", with_lines("X-A: b\r\n c"), false},
      {"blank before the colon", with_lines("X-A : b"), false},
      {"bare CR in a value", with_lines("X-A: b\rSet-Cookie: p=1"), false},
      {"bare LF in a value", with_lines("X-A: b\nSet-Cookie: p=1"), false},
      {"NUL in a value", with_lines("X-A: b\0c"s), false},
      {"no colon", with_lines("X-A"), false},
      {"empty name", with_lines(": a"), false},
      // RFC 9112 6: framing
      {"length", with_lines("Content-Length: 5"), true},
      {"length twice, equal", with_lines("Content-Length: 5\r\nContent-Length: 5"), false},
      {"length twice, different", with_lines("Content-Length: 5\r\nContent-Length: 2"), false},
      {"length list", with_lines("Content-Length: 5, 5"), false},
      {"length -1", with_lines("Content-Length: -1"), false},
      {"length +1", with_lines("Content-Length: +1"), false},
      {"length 0x1", with_lines("Content-Length: 0x1"), false},
      {"length empty", with_lines("Content-Length:"), false},
      {"length 2^63", with_lines("Content-Length: 9223372036854775808"), false},
      {"chunked", with_lines("Transfer-Encoding: chunked"), true},
      {"chunked, any case", with_lines("Transfer-Encoding: CHUNKED"), true},
      {"chunked beside a length", with_lines("Content-Length: 3\r\nTransfer-Encoding: chunked"),
       true},
      {"chunked beside a bad length", with_lines("Content-Length: x\r\nTransfer-Encoding: chunked"),
       false},
      {"chunked in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false},
      {"gzip", with_lines("Transfer-Encoding: gzip"), false},
      {"gzip, chunked", with_lines("Transfer-Encoding: gzip, chunked"), false},
      {"chunked twice", with_lines("Transfer-Encoding: chunked, chunked"), false},
      {"chunked in two lines",
       with_lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), false},
      {"identity", with_lines("Transfer-Encoding: identity"), false},
      {"no coding at all", with_lines("Transfer-Encoding: x"), true},
      {"no coding beside a length", with_lines("Content-Length: 3\r\nTransfer-Encoding: x"), false},
      {"no coding before chunked", with_lines("Transfer-Encoding: x, chunked"), false},
      {"near chunked", with_lines("Transfer-Encoding: xCHUNKEDx"), false},
  };
}

TEST(ScanResponse, AcceptsAndRefuses) {
  for (const Row& row : rows()) {
    ResponseHead head;
    const Progress progress = scan(row.input, head);
    EXPECT_EQ(progress, row.good ? Progress::complete : Progress::refused)
        << row.name << ": " << head.refusal.text;
    EXPECT_EQ(head.refusal.status, row.good ? 400 : 502) << row.name;
  }
}

TEST(ScanResponse, EverySplitGivesTheSameAnswer) {
  for (const Row& row : rows()) {
    const std::string whole = answer(row.input, {});
    EXPECT_EQ(answer(row.input, every_octet(row.input)), whole) << row.name;
    for (std::size_t cut = 1; cut < row.input.size(); ++cut) {
      ASSERT_EQ(answer(row.input, {cut}), whole) << row.name << " cut at " << cut;
    }
  }
}

// RFC 9112 6.3.
TEST(ScanResponse, DecidesTheBody) {
  struct {
    const char* name;
    const char* input;
    Method method;
    BodyKind kind;
    bool keep_alive;
    bool reusable;
  } const cases[] = {
      {"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::get, BodyKind::length,
       true, true},
      {"length wins over nothing in 1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
       Method::get, BodyKind::length, false, true},
      {"1.0 that keeps the connection",
       "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\n", Method::get,
       BodyKind::length, true, true},
      {"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", Method::get,
       BodyKind::length, false, true},
      {"no coding at all", "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\n", Method::get,
       BodyKind::until_close, false, true},
      {"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Method::get,
       BodyKind::chunked, true, true},
      {"chunked beside a length",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", Method::get,
       BodyKind::chunked, true, false},
      {"neither", "HTTP/1.1 200 OK\r\n\r\n", Method::get, BodyKind::until_close, false, true},
      {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::head, BodyKind::none, true,
       true},
      {"HEAD, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Method::head,
       BodyKind::none, true, true},
      {"HEAD, neither", "HTTP/1.1 200 OK\r\n\r\n", Method::head, BodyKind::none, true, true},
      {"204", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", Method::get, BodyKind::none,
       true, true},
      {"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Method::get, BodyKind::none,
       true, true},
      {"100", "HTTP/1.1 100 Continue\r\n\r\n", Method::post, BodyKind::none, true, true},
      {"103", "HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n", Method::get,
       BodyKind::none, true, true},
      {"101", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", Method::get,
       BodyKind::none, true, true},
      {"205 has one", "HTTP/1.1 205 Reset\r\nContent-Length: 5\r\n\r\n", Method::get,
       BodyKind::length, true, true},
  };
  for (const auto& c : cases) {
    ResponseHead head;
    ASSERT_EQ(scan(c.input, head, c.method), Progress::complete) << c.name;
    EXPECT_EQ(head.body.kind, c.kind) << c.name;
    EXPECT_EQ(head.keep_alive, c.keep_alive) << c.name;
    EXPECT_EQ(head.reusable, c.reusable) << c.name;
  }
}

TEST(ScanResponse, RefusesOtherProtocolsAtOnce) {
  ResponseHead head;
  EXPECT_EQ(scan("HTTX", head), Progress::refused);
  EXPECT_EQ(scan("HTT", head), Progress::incomplete);
  EXPECT_EQ(answer("HTTX", every_octet("HTTX")), "502 not an HTTP/1 answer");
}

TEST(ScanResponse, HoldsToItsLimits) {
  const HeadLimits limits{.size = 256, .fields = 3};
  ResponseHead head;
  EXPECT_EQ(scan(with_lines("A: 1\r\nA: 2\r\nA: 3"), head, Method::get, limits),
            Progress::complete);
  EXPECT_EQ(scan(with_lines("A: 1\r\nA: 2\r\nA: 3\r\nA: 4"), head, Method::get, limits),
            Progress::refused);
  EXPECT_EQ(head.refusal.reason, HeadError::header_too_large);
  EXPECT_EQ(scan(with_lines("A: " + std::string(300, 'a')), head, Method::get, limits),
            Progress::refused);
  EXPECT_EQ(head.refusal.reason, HeadError::header_too_large);
}

}  // namespace
}  // namespace clockwise::http
