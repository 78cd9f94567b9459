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

std::string answer(std::string_view input, const std::vector<std::size_t>& cuts,
                   const HeadLimits& limits = {}) {
  RequestHead head;
  const Progress progress =
      scan_in_pieces(input, cuts, [&](std::string_view octets, std::size_t& scanned) {
        head = {};  // nothing but `scanned` may be needed from one call to the next
        return scan_request(octets, limits, head, scanned);
      });
  return summary(input, progress, head);
}

Progress scan(std::string_view input, RequestHead& head, const HeadLimits& limits = {}) {
  std::size_t scanned = 0;
  return scan_request(input, limits, head, scanned);
}

std::string with_line(std::string_view line) {
  return "GET /x HTTP/1.1\r\nHost: h.example\r\n" + std::string(line) + "\r\n\r\n";
}

std::string with_host(std::string_view host) {
  return "GET /x HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
}

std::string with_start(std::string_view start) {
  return std::string(start) + "\r\nHost: h.example\r\n\r\n";
}

struct Row {
  const char* name;
  std::string input;
  int status;  // 0: accepted
};

std::vector<Row> rows() {
  using namespace std::string_literals;
  return {
      // RFC 9112 3: the request line
      {"plain", with_start("GET /a HTTP/1.1"), 0},
      {"query and escapes", with_start("GET /a%2Fb;p=1/~x?q=%41+b&c=%3D;e?f/g HTTP/1.1"), 0},
      {"characters browsers send", with_start("GET /a\"<>\\^`{|}b HTTP/1.1"), 0},
      {"raw UTF-8", with_start("GET /\xc3\xa9 HTTP/1.1"), 0},
      {"double slash", with_start("GET //a HTTP/1.1"), 0},
      {"unknown method", with_start("FROB /a HTTP/1.1"), 0},
      {"method of odd token octets", with_start("M-X!#$ /a HTTP/1.1"), 0},
      {"lower-case method", with_start("get /a HTTP/1.1"), 0},
      {"method with a delimiter", with_start("GE(T /a HTTP/1.1"), 400},
      {"no method", with_start(" /a HTTP/1.1"), 400},
      {"8-bit method", with_start("G\xc3T /a HTTP/1.1"), 400},
      {"two blanks before the target", with_start("GET  /a HTTP/1.1"), 400},
      {"two blanks before the version", with_start("GET /a  HTTP/1.1"), 400},
      {"HTAB as separator", with_start("GET\t/a HTTP/1.1"), 400},
      {"HTAB before the version", with_start("GET /a\tHTTP/1.1"), 400},
      {"VT as separator", with_start("GET\v/a HTTP/1.1"), 400},
      {"trailing blank", with_start("GET /a HTTP/1.1 "), 400},
      {"blank in the target", with_start("GET /a b HTTP/1.1"), 400},
      {"NUL in the target", with_start("GET /a\0b HTTP/1.1"s), 400},
      {"control in the target", with_start("GET /a\x01 HTTP/1.1"), 400},
      {"DEL in the target", with_start("GET /a\x7f HTTP/1.1"), 400},
      {"bare CR in the target", with_start("GET /a\rX HTTP/1.1"), 400},
      {"bare LF in the target", with_start("GET /a\nX HTTP/1.1"), 400},
      {"fragment", with_start("GET /a#f HTTP/1.1"), 400},
      {"no target", with_start("GET HTTP/1.1"), 400},
      {"empty target", with_start("GET  HTTP/1.1"), 400},
      {"HTTP/0.9", with_start("GET /a"), 400},
      {"leading blank line is the caller's", "\r\n" + with_start("GET /a HTTP/1.1"), 400},
      {"all bare LF", "GET /a HTTP/1.1\nHost: h\n\n", 400},
      {"TLS hello", "\x16\x03\x01", 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      // RFC 9112 2.3, RFC 9110 2.5: the version
      {"HTTP/1.0", with_start("GET /a HTTP/1.0"), 0},
      {"HTTP/1.2 is served as 1.1", with_start("GET /a HTTP/1.2"), 0},
      {"HTTP/1.9", with_start("GET /a HTTP/1.9"), 0},
      {"HTTP/2.0", with_start("GET /a HTTP/2.0"), 505},
      {"HTTP/3.0", with_start("GET /a HTTP/3.0"), 505},
      {"HTTP/0.9 in text", with_start("GET /a HTTP/0.9"), 505},
      {"HTTP/1.10", with_start("GET /a HTTP/1.10"), 400},
      {"HTTP/01.1", with_start("GET /a HTTP/01.1"), 400},
      {"HTTP/1", with_start("GET /a HTTP/1"), 400},
      {"HTTP/1.", with_start("GET /a HTTP/1."), 400},
      {"HTTP/.1", with_start("GET /a HTTP/.1"), 400},
      {"HTTP/11", with_start("GET /a HTTP/11"), 400},
      {"HTTP 1.1", with_start("GET /a HTTP 1.1"), 400},
      {"lower case version", with_start("GET /a http/1.1"), 400},
      {"other protocol", with_start("GET /a HTCPCP/1.0"), 400},
      {"HTTPS/1.1", with_start("GET /a HTTPS/1.1"), 400},
      {"signed minor", with_start("GET /a HTTP/1.-1"), 400},
      // RFC 9112 3.2: forms of the target
      {"absolute", with_start("GET http://h.example/a HTTP/1.1"), 0},
      {"absolute, upper case", with_start("GET HTTP://h.example:80/a HTTP/1.1"), 0},
      {"absolute https", with_start("GET https://h.example/a HTTP/1.1"), 0},
      {"absolute without path", with_start("GET http://h.example HTTP/1.1"), 0},
      {"absolute with query alone", with_start("GET http://h.example?q=1 HTTP/1.1"), 0},
      {"absolute, IPv6", with_start("GET http://[::1]:80/a HTTP/1.1"), 0},
      {"absolute without host", with_start("GET http:///a HTTP/1.1"), 400},
      {"absolute, port alone", with_start("GET http://:80/a HTTP/1.1"), 400},
      {"absolute, nothing", with_start("GET http:// HTTP/1.1"), 400},
      {"absolute, userinfo", with_start("GET http://u@h.example/a HTTP/1.1"), 400},
      {"absolute, password", with_start("GET http://u:p@h.example/a HTTP/1.1"), 400},
      {"absolute, bad port", with_start("GET http://h.example:8x/a HTTP/1.1"), 400},
      {"absolute, port too large", with_start("GET http://h.example:65536/a HTTP/1.1"), 400},
      {"absolute, backslash", with_start("GET http://h.example\\a/ HTTP/1.1"), 400},
      {"absolute, one slash", with_start("GET http:/h.example/a HTTP/1.1"), 400},
      {"absolute, other scheme", with_start("GET ftp://h.example/a HTTP/1.1"), 400},
      {"absolute, no Host line", "GET http://h.example/a HTTP/1.1\r\n\r\n", 400},
      {"absolute, bad Host line", "GET http://h.example/a HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"asterisk for OPTIONS", with_start("OPTIONS * HTTP/1.1"), 0},
      {"asterisk for GET", with_start("GET * HTTP/1.1"), 400},
      {"asterisk and more", with_start("OPTIONS *a HTTP/1.1"), 400},
      {"authority form for GET", with_start("GET h.example:443 HTTP/1.1"), 400},
      {"relative", with_start("GET a/b HTTP/1.1"), 400},
      {"query alone", with_start("GET ?a HTTP/1.1"), 400},
      {"CONNECT", with_start("CONNECT h.example:443 HTTP/1.1"), 405},
      {"CONNECT with a path", with_start("CONNECT /a HTTP/1.1"), 405},
      {"TRACE", with_start("TRACE /a HTTP/1.1"), 405},
      // RFC 9112 3.2: Host
      {"no Host", "GET /a HTTP/1.1\r\n\r\n", 400},
      {"no Host in 1.0", "GET /a HTTP/1.0\r\n\r\n", 0},
      {"two Host lines", with_line("Host: h.example"), 400},
      {"two Host lines in 1.0", "GET /a HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"two Host lines, cases differ", with_line("hOST: other"), 400},
      {"bad Host in 1.0", "GET /a HTTP/1.0\r\nHost: a b\r\n\r\n", 400},
      {"empty Host", with_host(""), 0},
      {"Host with port", with_host("h.example:8080"), 0},
      {"Host with empty port", with_host("h.example:"), 0},
      {"Host, port 65535", with_host("h.example:65535"), 0},
      {"Host, sub-delims", with_host("a!$&'()*+;=b"), 0},
      {"Host, underscore and tilde", with_host("a_b~c"), 0},
      {"Host, escapes", with_host("h%41x"), 0},
      {"Host, IPv4", with_host("192.0.2.1:80"), 0},
      {"Host, IPv6", with_host("[2001:db8::1]"), 0},
      {"Host, IPv6 and port", with_host("[::ffff:192.0.2.1]:443"), 0},
      {"Host, port too large", with_host("h.example:65536"), 400},
      {"Host, port of letters", with_host("h.example:http"), 400},
      {"Host, signed port", with_host("h.example:+80"), 400},
      {"Host, two ports", with_host("h.example:80:80"), 400},
      {"Host, port alone", with_host(":80"), 400},
      {"Host, blank", with_host("a b"), 400},
      {"Host, HTAB", with_host("a\tb"), 400},
      {"Host, slash", with_host("h/x"), 400},
      {"Host, backslash", with_host("h\\x"), 400},
      {"Host, userinfo", with_host("u@h"), 400},
      {"Host, list", with_host("a,b"), 400},
      {"Host, fragment", with_host("h#x"), 400},
      {"Host, query", with_host("h?x"), 400},
      {"Host, URL", with_host("http://h.example"), 400},
      {"Host, quotes", with_host("\"h\""), 400},
      {"Host, angle", with_host("<h>"), 400},
      {"Host, 8-bit", with_host("h\xc3\xa9"), 400},
      {"Host, NUL", with_host("h\0x"s), 400},
      {"Host, half an escape", with_host("h%4"), 400},
      {"Host, bad escape", with_host("h%zz"), 400},
      {"Host, open bracket", with_host("[::1"), 400},
      {"Host, closing bracket", with_host("::1]"), 400},
      {"Host, bare IPv6", with_host("2001:db8::1"), 400},
      {"Host, bracketed name", with_host("[h]"), 400},
      {"Host, zone", with_host("[fe80::1%25eth0]"), 400},
      {"Host, after bracket", with_host("[::1]x"), 400},
      {"Host, empty brackets", with_host("[]"), 400},
      // RFC 9112 5: field lines
      {"empty value", with_line("X-E:"), 0},
      {"blank value", with_line("X-S:   \t "), 0},
      {"value with HTAB and 8-bit", with_line("X-A: a\tb \xff"), 0},
      {"long value with HTABs", with_line("X-A: " + std::string(100, 'a') + "\t\t" + "b"), 0},
      {"no blank after the colon", with_line("X-A:b"), 0},
      {"colons in the value", with_line("X-A: a:b:c"), 0},
      {"blank before the colon", with_line("X-A : b"), 400},
      {"HTAB before the colon", with_line("X-A\t: b"), 400},
      {"blank in the name", with_line("X A: b"), 400},
      {"no colon", with_line("X-A"), 400},
      {"empty name", with_line(": v"), 400},
      {"8-bit name", with_line("X\xe9: b"), 400},
      {"NUL in the name", with_line("X\0A: b"s), 400},
      {"parenthesis in the name", with_line("X(A): b"), 400},
      {"NUL in the value", with_line("X-A: b\0c"s), 400},
      {"control in the value", with_line("X-A: b\x01"), 400},
      {"VT in the value", with_line("X-A: b\v"), 400},
      {"DEL in the value", with_line("X-A: b\x7f"), 400},
      {"ESC in a long value", with_line("X-A: " + std::string(40, 'a') + "\x1b" + "b"), 400},
      {"bare CR in the value", with_line("X-A: b\rc"), 400},
      {"two CR", with_line("X-A: b\r"), 400},
      {"bare LF in the value", with_line("X-A: b\nX-B: c"), 400},
      {"bare LF ends the head", "GET /a HTTP/1.1\r\nHost: h\r\n\n", 400},
      {"folded line, SP", with_line("X-A: b\r\n c"), 400},
      {"folded line, HTAB", with_line("X-A: b\r\n\tc"), 400},
      {"folded empty line", with_line("X-A:\r\n c"), 400},
      {"blank-led first line", "GET /a HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      // RFC 9112 6.2, RFC 9110 8.6: Content-Length
      {"length", with_line("Content-Length: 5"), 0},
      {"length 0", with_line("Content-Length: 0"), 0},
      {"length with leading zeros", with_line("Content-Length: 0005"), 0},
      {"length, blanks around", with_line("Content-Length: \t5 \t"), 0},
      {"length 2^63-1", with_line("Content-Length: 9223372036854775807"), 0},
      {"length 2^63", with_line("Content-Length: 9223372036854775808"), 400},
      {"length 2^64", with_line("Content-Length: 18446744073709551616"), 400},
      {"length 2^64+5", with_line("Content-Length: 18446744073709551621"), 400},
      {"length of 200 digits", with_line("Content-Length: " + std::string(200, '9')), 400},
      {"length +5", with_line("Content-Length: +5"), 400},
      {"length -0", with_line("Content-Length: -0"), 400},
      {"length -5", with_line("Content-Length: -5"), 400},
      {"length 0x5", with_line("Content-Length: 0x5"), 400},
      {"length 5.0", with_line("Content-Length: 5.0"), 400},
      {"length 1e2", with_line("Content-Length: 1e2"), 400},
      {"length 1_0", with_line("Content-Length: 1_0"), 400},
      {"length 5abc", with_line("Content-Length: 5abc"), 400},
      {"length 5 5", with_line("Content-Length: 5 5"), 400},
      {"length quoted", with_line("Content-Length: \"5\""), 400},
      {"length empty", with_line("Content-Length:"), 400},
      {"length blank", with_line("Content-Length:  "), 400},
      {"length list", with_line("Content-Length: 5, 5"), 400},
      {"length list, one empty", with_line("Content-Length: 5,"), 400},
      {"length, fullwidth digit", with_line("Content-Length: \xef\xbc\x95"), 400},
      {"length VT", with_line("Content-Length: 5\v"), 400},
      {"length twice, equal", with_line("Content-Length: 5\r\nContent-Length: 5"), 400},
      {"length twice, different", with_line("Content-Length: 5\r\ncontent-length: 0"), 400},
      {"length beside chunked", with_line("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400},
      {"chunked beside length", with_line("Transfer-Encoding: chunked\r\nContent-Length: 5"), 400},
      // RFC 9112 6.1 and 7: Transfer-Encoding
      {"chunked", with_line("Transfer-Encoding: chunked"), 0},
      {"chunked, any case", with_line("tRANSFER-eNCODING: ChUnKeD"), 0},
      {"chunked, blanks around", with_line("Transfer-Encoding: \t chunked \t"), 0},
      {"chunked in 1.0", "POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"chunked in two lines",
       with_line("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
      {"identity and chunked in two lines",
       with_line("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"), 400},
      {"chunked twice", with_line("Transfer-Encoding: chunked, chunked"), 400},
      {"empty member first", with_line("Transfer-Encoding: ,chunked"), 400},
      {"empty member last", with_line("Transfer-Encoding: chunked,"), 400},
      {"empty coding", with_line("Transfer-Encoding:"), 400},
      {"identity", with_line("Transfer-Encoding: identity"), 400},
      {"gzip", with_line("Transfer-Encoding: gzip"), 400},
      {"chunked, gzip", with_line("Transfer-Encoding: chunked, gzip"), 400},
      {"chunked, identity", with_line("Transfer-Encoding: chunked, identity"), 400},
      {"gzip, chunked", with_line("Transfer-Encoding: gzip, chunked"), 501},
      {"unknown coding", with_line("Transfer-Encoding: xchunked"), 501},
      {"chunked and a letter", with_line("Transfer-Encoding: chunkedx"), 501},
      {"chunked with parameter", with_line("Transfer-Encoding: chunked;x=y"), 400},
      {"chunked quoted", with_line("Transfer-Encoding: \"chunked\""), 400},
      {"chunked and a word", with_line("Transfer-Encoding: chunked foo"), 400},
      {"chunked VT", with_line("Transfer-Encoding: chunked\v"), 400},
      {"VT chunked", with_line("Transfer-Encoding: \vchunked"), 400},
      {"NBSP chunked",
       with_line("Transfer-Encoding: \xa0"
                 "chunked"),
       400},
      {"blank before the colon of chunked", with_line("Transfer-Encoding : chunked"), 400},
      {"folded chunked", with_line("Transfer-Encoding:\r\n chunked"), 400},
      {"length and gzip", with_line("Content-Length: 5\r\nTransfer-Encoding: gzip"), 400},
      // RFC 9110 10.1.1: Expect
      {"100-continue", with_line("Content-Length: 5\r\nExpect: 100-Continue"), 0},
      {"unknown expectation", with_line("Expect: teapot"), 417},
      {"expectation list", with_line("Expect: 100-continue, teapot"), 417},
      {"empty expectation", with_line("Expect:"), 417},
      // RFC 9110 7.6.1 and 7.6.2
      {"Connection with odd members", with_line("Connection: , a b, \"q\", close"), 0},
      {"TRACE with Max-Forwards 0", "TRACE /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n", 405},
      {"Max-Forwards", "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n", 0},
      {"Max-Forwards, bad", "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: x\r\n\r\n", 400},
      {"Max-Forwards, signed", "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: -1\r\n\r\n", 400},
      {"Max-Forwards twice",
       "OPTIONS /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\nMax-Forwards: 0\r\n\r\n", 400},
      {"Max-Forwards of GET is nobody's business", with_line("Max-Forwards: x"), 0},
  };
}

TEST(ScanRequest, AcceptsAndRefuses) {
  for (const Row& row : rows()) {
    RequestHead head;
    const Progress progress = scan(row.input, head);
    if (row.status == 0) {
      EXPECT_EQ(progress, Progress::complete) << row.name << ": " << head.refusal.text;
      EXPECT_EQ(head.size, row.input.size()) << row.name;
    } else {
      EXPECT_EQ(progress, Progress::refused) << row.name;
      EXPECT_EQ(head.refusal.status, row.status) << row.name << ": " << head.refusal.text;
      EXPECT_FALSE(head.refusal.text.empty()) << row.name;
    }
  }
}

TEST(ScanRequest, EverySplitGivesTheSameAnswer) {
  for (const Row& row : rows()) {
    const std::string whole = answer(row.input, {});
    EXPECT_EQ(answer(row.input, every_octet(row.input)), whole) << row.name;
    for (std::size_t cut = 1; cut < row.input.size(); ++cut) {
      ASSERT_EQ(answer(row.input, {cut}), whole) << row.name << " cut at " << cut;
    }
  }
}

TEST(ScanRequest, OctetsAfterTheHeadChangeNothing) {
  for (const Row& row : rows()) {
    RequestHead alone;
    RequestHead followed;
    const std::string more = row.input + "GET /next HTTP/1.1\r\n";
    const Progress progress = scan(row.input, alone);
    ASSERT_EQ(scan(more, followed), progress) << row.name;
    if (progress == Progress::complete) {
      EXPECT_EQ(summary(more, progress, followed), summary(row.input, progress, alone)) << row.name;
    }
  }
}

TEST(ScanRequest, KnowsMethodTargetAndHost) {
  struct {
    const char* start;
    Method method;
    const char* uri;
    const char* authority;
    bool absolute;
    bool origin_line;
  } const cases[] = {
      {"GET /a?b HTTP/1.1", Method::get, "/a?b", "h.example", false, true},
      {"DELETE /a HTTP/1.0", Method::del, "/a", "h.example", false, false},
      {"PATCH /a HTTP/1.2", Method::patch, "/a", "h.example", false, false},
      {"OPTIONS * HTTP/1.1", Method::options, "*", "h.example", false, true},
      {"GET http://o.example:8/a?b HTTP/1.1", Method::get, "/a?b", "o.example:8", true, false},
      {"GET http://o.example HTTP/1.1", Method::get, "/", "o.example", true, false},
      {"OPTIONS http://o.example HTTP/1.1", Method::options, "*", "o.example", true, false},
      {"GET http://o.example?q HTTP/1.1", Method::get, "/?q", "o.example", true, false},
      {"POSTS /a HTTP/1.1", Method::other, "/a", "h.example", false, true},
      {"get /a HTTP/1.1", Method::other, "/a", "h.example", false, true},
  };
  for (const auto& c : cases) {
    const std::string input = with_start(c.start);
    RequestHead head;
    ASSERT_EQ(scan(input, head), Progress::complete) << c.start;
    const RequestHead moved = std::move(head);
    EXPECT_EQ(moved.method_id, c.method) << c.start;
    EXPECT_EQ(moved.uri, c.uri) << c.start;
    EXPECT_EQ(moved.authority, c.authority) << c.start;
    EXPECT_EQ(moved.absolute_form, c.absolute) << c.start;
    EXPECT_EQ(moved.origin_line, c.origin_line) << c.start;
  }
}

// RFC 9112 9.3.
TEST(ScanRequest, KeepsAliveByVersionAndConnection) {
  struct {
    const char* version;
    const char* line;
    bool keep_alive;
  } const cases[] = {
      {"1.1", "X: y", true},
      {"1.1", "Connection: close", false},
      {"1.1", "Connection: foo,CLOSE ,", false},
      {"1.1", "Connection: foo\r\nConnection: close", false},
      {"1.1", "Connection: keep-alive, close", false},
      {"1.1", "Connection: closed", true},
      {"1.1", "Proxy-Connection: close", true},
      {"1.0", "X: y", false},
      {"1.0", "Connection: Keep-Alive", true},
      {"1.0", "Connection: keep-alive, close", false},
      {"1.7", "X: y", true},
  };
  for (const auto& c : cases) {
    const std::string input =
        std::string("GET / HTTP/") + c.version + "\r\nHost: h\r\n" + c.line + "\r\n\r\n";
    RequestHead head;
    ASSERT_EQ(scan(input, head), Progress::complete) << input;
    EXPECT_EQ(head.keep_alive, c.keep_alive) << input;
  }
}

TEST(ScanRequest, ReadsFramingExpectAndMaxForwards) {
  RequestHead head;
  ASSERT_EQ(scan(with_line("Content-Length: 0042\r\nExpect: 100-continue"), head),
            Progress::complete);
  EXPECT_EQ(head.body.kind, BodyKind::length);
  EXPECT_EQ(head.body.length, 42U);
  ASSERT_EQ(head.fields.size(), 3U);
  EXPECT_FALSE(head.fields[2].hop_by_hop);
  ASSERT_EQ(scan("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", head),
            Progress::complete);
  ASSERT_EQ(head.fields.size(), 2U);
  EXPECT_TRUE(head.fields[1].hop_by_hop) << "RFC 9110 10.1.1: ignored in HTTP/1.0";
  ASSERT_EQ(scan("OPTIONS / HTTP/1.1\r\nHost:\r\nMax-Forwards: 99999999999\r\n\r\n", head),
            Progress::complete);
  EXPECT_EQ(head.max_forwards, 2147483647);
}

std::string hop_by_hop_names(const std::string& input) {
  RequestHead head;
  EXPECT_EQ(scan(input, head), Progress::complete) << head.refusal.text;
  std::string names;
  for (const FieldLine& line : head.fields) {
    if (line.hop_by_hop) names.append(name_of(input, line)).append(" ");
  }
  return names;
}

// RFC 9110 7.6.1.
TEST(ScanRequest, MarksHopByHopFields) {
  EXPECT_EQ(hop_by_hop_names(with_line("Keep-Alive: 1\r\nProxy-Connection: x\r\nTE: x\r\nTrailer: "
                                       "x\r\nUpgrade: x\r\nHTTP2-Settings: x\r\nX-A: x")),
            "Keep-Alive Proxy-Connection TE Trailer Upgrade HTTP2-Settings ");
  EXPECT_EQ(
      hop_by_hop_names(with_line("X-Foo: 1\r\nConnection: x-foo,\tX-BAR\r\nX-Bar: 2\r\nX-Foo: "
                                 "3\r\nX-Fo: 4")),
      "X-Foo Connection X-Bar X-Foo ");
  EXPECT_EQ(hop_by_hop_names(with_line("Connection: a\r\nConnection: b\r\nA: 1\r\nB: 2\r\nC: 3")),
            "Connection Connection A B ");
  EXPECT_EQ(hop_by_hop_names(with_line("Connection: expect, max-forwards, accept\r\nMax-Forwards: "
                                       "1\r\nExpect: 100-continue\r\nAccept: a/b")),
            "Connection Max-Forwards Expect Accept ");
}

TEST(ScanRequest, LetsNoClientNameTheseAway) {
  const std::string input =
      "POST / HTTP/1.1\r\nHost: h\r\nConnection: Host, Content-Length, Cache-Control, Via, "
      "X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Forwarded, X-Request-Id\r\n"
      "Content-Length: 5\r\nCache-Control: no-store\r\nVia: 1.1 a\r\n"
      "X-Forwarded-For: 1\r\nX-Forwarded-Proto: a\r\nX-Forwarded-Host: b\r\nForwarded: for=a\r\n"
      "X-Request-Id: i\r\n\r\n";
  EXPECT_EQ(hop_by_hop_names(input), "Connection ");
}

TEST(ScanRequest, BoundsConnectionLists) {
  std::string list = "Connection: a";
  for (int i = 0; i < 200; ++i) list += ",a";
  RequestHead head;
  EXPECT_EQ(scan(with_line(list), head), Progress::refused);
  EXPECT_EQ(head.refusal.status, 431);
}

TEST(ScanRequest, HoldsToItsLimits) {
  const HeadLimits limits{.size = 512, .fields = 5};
  RequestHead head;
  const auto status = [&](const std::string& input) {
    head.refusal = {};
    return scan(input, head, limits) == Progress::refused ? int{head.refusal.status} : 0;
  };
  const std::string frame = "GET / HTTP/1.1\r\nHost: h\r\nX: \r\n\r\n";
  const auto sized = [&](std::size_t size) {
    return "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(size - frame.size(), 'x') + "\r\n\r\n";
  };
  EXPECT_EQ(status(sized(512)), 0);
  EXPECT_EQ(head.size, 512U);
  EXPECT_EQ(status(sized(513)), 431);
  EXPECT_EQ(status(sized(513).substr(0, 512)), 431) << "cannot end within the limit any more";
  EXPECT_EQ(status("GET /" + std::string(600, 'a')), 414);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n\r\n"), 0);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n\r\n"),
            431);
}

TEST(ScanRequest, HoldsATargetToItsLimit) {
  const HeadLimits limits{.target = 16};
  const std::string rest = " HTTP/1.1\r\nHost: h\r\n\r\n";
  RequestHead head;
  EXPECT_EQ(scan("GET /" + std::string(15, 'a') + rest, head, limits), Progress::complete);
  for (const std::string& target : {"/" + std::string(16, 'a'), std::string("http://h.example/")}) {
    EXPECT_EQ(scan("GET " + target + rest, head, limits), Progress::refused) << target;
    EXPECT_EQ(head.refusal.status, 414);
    EXPECT_EQ(head.refusal.reason, HeadError::uri_too_long);
  }
}

// What the head held before, for another connection, must not show in the answer.
TEST(ScanRequest, KnowsWhatItRefusesForItsSize) {
  const HeadLimits limits{.size = 64, .fields = 5};
  for (const std::string& input :
       {"HEAD /" + std::string(100, 'a'), "HEAD / HTTP/1.0\r\nA: " + std::string(100, 'a')}) {
    RequestHead head;
    std::size_t scanned = 0;
    Progress progress = Progress::incomplete;
    for (std::size_t size = 1; progress == Progress::incomplete && size < input.size(); ++size) {
      head.method_id = Method::post;
      head.accepts_json = true;
      progress = scan_request(std::string_view(input).substr(0, size), limits, head, scanned);
    }
    EXPECT_EQ(progress, Progress::refused);
    EXPECT_EQ(head.method_id, Method::head) << input;
    EXPECT_FALSE(head.accepts_json) << input;
  }
}

TEST(ScanRequest, WaitsForMore) {
  const std::string input = with_line("X-A: b");
  for (std::size_t size = 0; size < input.size(); ++size) {
    RequestHead head;
    EXPECT_EQ(scan(std::string_view(input).substr(0, size), head), Progress::incomplete) << size;
  }
  RequestHead head;
  EXPECT_EQ(scan("\r", head), Progress::incomplete) << "half of a blank line";
}

TEST(ScanRequest, JudgesALineAsSoonAsItEnds) {
  RequestHead head;
  EXPECT_EQ(scan("GET /a HTTP/9.9\r\n", head), Progress::refused);
  EXPECT_EQ(scan("GET /a HTTP/1.1\r\nHost : h\r\nX", head), Progress::refused);
  EXPECT_EQ(answer("GET /a HTTP/1.1\r\nHost : h\r\nX", {20, 27}), "400 blank before the colon");
}

TEST(ScanRequest, PrefersJsonWhereTheClientDoes) {
  const auto prefers = [](const std::string& accept) {
    RequestHead head;
    EXPECT_EQ(scan(with_line("Accept: " + accept), head), Progress::complete);
    return head.accepts_json;
  };
  EXPECT_TRUE(prefers("application/json"));
  EXPECT_TRUE(prefers("Application/JSON, */*"));
  EXPECT_TRUE(prefers("text/plain;q=0.5, application/json;q=0.9"));
  EXPECT_FALSE(prefers("*/*"));
  EXPECT_FALSE(prefers("application/json;q=0"));
  EXPECT_FALSE(prefers("application/json, text/plain"));
  EXPECT_FALSE(prefers("text/plain, application/json;q=0.9"));
  EXPECT_FALSE(prefers("text/html,application/xhtml+xml,*/*;q=0.8"));
}

TEST(LeadingBlankLines, CountsWholeOnes) {
  EXPECT_EQ(leading_blank_lines("GET"), 0U);
  EXPECT_EQ(leading_blank_lines("\r"), 0U);
  EXPECT_EQ(leading_blank_lines("\r\nGET"), 2U);
  EXPECT_EQ(leading_blank_lines("\r\n\r\n\r"), 4U);
  EXPECT_EQ(leading_blank_lines("\n"), 0U);
}

}  // namespace
}  // namespace clockwise::http
