#include "http/rewrite.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace clockwise::http {
namespace {

std::string text_of(const Gather& gather) {
  std::string text;
  for (const std::string_view slice : gather.slices()) text.append(slice);
  EXPECT_EQ(text.size(), gather.size());
  return text;
}

const RequestContext kContext{.client_ip = "192.0.2.7", .request_id = "id-1"};

std::string rewritten(const std::string& input, const RequestContext& context = kContext) {
  RequestHead head;
  std::size_t scanned = 0;
  EXPECT_EQ(scan_request(input, {}, head, scanned), Progress::complete) << head.refusal.text;
  Gather out;
  rewrite_request(input, head, context, out);
  return text_of(out);
}

const std::string kOwn =
    "Via: 1.1 clockwise\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n"
    "X-Forwarded-Host: h.example\r\nX-Request-Id: id-1\r\n\r\n";

TEST(RewriteRequest, RelaysWhatItMayAndAddsItsOwn) {
  EXPECT_EQ(rewritten("GET /a?b HTTP/1.1\r\nhOst:  h.example \r\nX-E:\r\nX-A: b\r\n\r\n"),
            "GET /a?b HTTP/1.1\r\nhOst:  h.example \r\nX-E:\r\nX-A: b\r\n" + kOwn);
}

TEST(RewriteRequest, TakesTwoSlicesForAnOrdinaryHead) {
  const std::string input = "GET /a HTTP/1.1\r\nHost: h\r\nX-A: b\r\nX-B: c\r\n\r\n";
  RequestHead head;
  std::size_t scanned = 0;
  ASSERT_EQ(scan_request(input, {}, head, scanned), Progress::complete);
  Gather out;
  rewrite_request(input, head, kContext, out);
  EXPECT_EQ(out.slices().size(), 2U);
}

TEST(RewriteRequest, WritesFramingAnew) {
  EXPECT_EQ(rewritten("POST / HTTP/1.1\r\nHost: h.example\r\nContent-Length: 0005\r\nA: b\r\n\r\n"),
            "POST / HTTP/1.1\r\nHost: h.example\r\nA: b\r\nContent-Length: 5\r\n" + kOwn);
  EXPECT_EQ(rewritten("POST / HTTP/1.1\r\nHost: h.example\r\nTransfer-Encoding:  Chunked\r\n\r\n"),
            "POST / HTTP/1.1\r\nHost: h.example\r\nTransfer-Encoding: chunked\r\n" + kOwn);
}

TEST(RewriteRequest, WritesTheRequestLineAndHostOfOtherForms) {
  EXPECT_EQ(rewritten("GET http://h.example/a HTTP/1.1\r\nA: b\r\nHost: other\r\n\r\n"),
            "GET /a HTTP/1.1\r\nHost: h.example\r\nA: b\r\n" + kOwn);
  EXPECT_EQ(rewritten("GET http://h.example?q HTTP/1.1\r\nHost: other\r\n\r\n"),
            "GET /?q HTTP/1.1\r\nHost: h.example\r\n" + kOwn);
  EXPECT_EQ(rewritten("GET http://h.example HTTP/1.1\r\nHost: other\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: h.example\r\n" + kOwn);
  EXPECT_EQ(rewritten("OPTIONS http://h.example HTTP/1.1\r\nHost: other\r\n\r\n"),
            "OPTIONS * HTTP/1.1\r\nHost: h.example\r\n" + kOwn);
  EXPECT_EQ(rewritten("GET /a HTTP/1.3\r\nHost: h.example\r\n\r\n"),
            "GET /a HTTP/1.1\r\nHost: h.example\r\n" + kOwn);
  RequestContext context = kContext;
  context.style = ForwardedStyle::off;
  context.fallback_host = "10.0.0.1:80";
  EXPECT_EQ(rewritten("GET /a HTTP/1.0\r\nA: b\r\n\r\n", context),
            "GET /a HTTP/1.1\r\nHost: 10.0.0.1:80\r\nA: b\r\nVia: 1.0 clockwise\r\n"
            "X-Request-Id: id-1\r\n\r\n");
}

TEST(RewriteRequest, RemovesHopByHopFields) {
  EXPECT_EQ(rewritten("GET / HTTP/1.1\r\nHost: h.example\r\nConnection: X-Foo, Upgrade, "
                      "HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nX-Foo: 1\r\nTE: "
                      "trailers\r\nTrailer: X\r\nKeep-Alive: 5\r\nProxy-Connection: a\r\nX-Bar: "
                      "2\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: h.example\r\nX-Bar: 2\r\n" + kOwn);
}

TEST(RewriteRequest, DropsExpectOfHttp10) {
  EXPECT_EQ(rewritten("POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 1\r\nExpect: "
                      "100-continue\r\n\r\n")
                .find("Expect"),
            std::string::npos);
  EXPECT_NE(rewritten("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: "
                      "100-continue\r\n\r\n")
                .find("Expect: 100-continue\r\n"),
            std::string::npos);
}

TEST(RewriteRequest, BelievesForwardingFieldsOfTheTrustedOnly) {
  const std::string input =
      "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: "
      "2.2.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: o\r\nX-Forwarded-Port: "
      "1\r\nForwarded: for=3.3.3.3\r\nX-Real-IP: 4.4.4.4\r\n\r\n";
  EXPECT_EQ(rewritten(input),
            "GET / HTTP/1.1\r\nHost: h\r\nX-Real-IP: 4.4.4.4\r\nVia: 1.1 clockwise\r\n"
            "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n"
            "X-Request-Id: id-1\r\n\r\n");
  RequestContext context = kContext;
  context.trusted = true;
  EXPECT_EQ(rewritten(input, context),
            "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: o\r\n"
            "X-Forwarded-Port: 1\r\nForwarded: for=3.3.3.3\r\nX-Real-IP: 4.4.4.4\r\n"
            "Via: 1.1 clockwise\r\nX-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7\r\n"
            "X-Request-Id: id-1\r\n\r\n");
  context.style = ForwardedStyle::forwarded;
  context.client_ip = "2001:db8::1";
  context.scheme = "https";
  EXPECT_EQ(rewritten("GET / HTTP/1.1\r\nHost: h:81\r\nForwarded: for=3.3.3.3\r\n\r\n", context),
            "GET / HTTP/1.1\r\nHost: h:81\r\nVia: 1.1 clockwise\r\nForwarded: for=3.3.3.3, "
            "for=\"[2001:db8::1]\";proto=https;host=\"h:81\"\r\nX-Request-Id: id-1\r\n\r\n");
  context.trusted = false;
  context.style = ForwardedStyle::off;
  EXPECT_EQ(rewritten(input, context),
            "GET / HTTP/1.1\r\nHost: h\r\nX-Real-IP: 4.4.4.4\r\nVia: 1.1 clockwise\r\n"
            "X-Request-Id: id-1\r\n\r\n");
}

TEST(RewriteRequest, KeepsAUsableRequestId) {
  const auto id_of = [](const std::string& lines) {
    const std::string text = rewritten("GET / HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
    std::string ids;
    std::size_t at = 0;
    while ((at = text.find("X-Request-Id: ", at)) != std::string::npos) {
      at += 14;
      ids += text.substr(at, text.find('\r', at) - at) + ";";
    }
    return ids;
  };
  EXPECT_EQ(id_of("X-Request-Id: abc-123\r\n"), "abc-123;");
  EXPECT_EQ(id_of("X-Request-Id:\r\n"), "id-1;");
  EXPECT_EQ(id_of("X-Request-Id: a b\r\n"), "id-1;");
  EXPECT_EQ(id_of("X-Request-Id: \xc3\xa9\r\n"), "id-1;");
  EXPECT_EQ(id_of("X-Request-Id: a\r\nX-Request-Id: b\r\n"), "id-1;");
  EXPECT_EQ(id_of("X-Request-Id: " + std::string(129, 'a') + "\r\n"), "id-1;");
}

TEST(RewriteRequest, ClientOnAUnixSocketIsUnknown) {
  RequestContext context = kContext;
  context.client_ip = {};
  const std::string input = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  EXPECT_EQ(rewritten(input, context),
            "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 clockwise\r\nX-Forwarded-For: unknown\r\n"
            "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nX-Request-Id: id-1\r\n\r\n");
  context.style = ForwardedStyle::forwarded;
  EXPECT_EQ(rewritten(input, context),
            "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 clockwise\r\n"
            "Forwarded: for=unknown;proto=http;host=h\r\nX-Request-Id: id-1\r\n\r\n");
}

TEST(RewriteRequest, CountsDownMaxForwardsAndAsksToClose) {
  RequestContext context = kContext;
  context.style = ForwardedStyle::off;
  context.close = true;
  EXPECT_EQ(rewritten("OPTIONS / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 10\r\n\r\n", context),
            "OPTIONS / HTTP/1.1\r\nHost: h\r\nVia: 1.1 clockwise\r\nX-Request-Id: id-1\r\n"
            "Max-Forwards: 9\r\nConnection: close\r\n\r\n");
}

TEST(RewriteRequest, SurvivesHeadsThatAreCutUp) {
  std::string input = "GET / HTTP/1.1\r\nHost: h.example\r\n";
  std::string kept = input;
  for (int i = 0; i < 40; ++i) {
    input += "TE: x\r\nA: " + std::to_string(i) + "\r\n";
    kept += "A: " + std::to_string(i) + "\r\n";
  }
  EXPECT_EQ(rewritten(input + "\r\n"), kept + kOwn);
}

TEST(RewriteRequest, SurvivesLongTextOfItsOwn) {
  const std::string host(3000, 'h');
  const std::string text = rewritten("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(text.starts_with("GET / HTTP/1.1\r\nHost: " + host + "\r\nVia"));
}

TEST(TimesPassed, CountsOurNameInVia) {
  const std::string input =
      "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 clockwise, 1.0 other (clockwise)\r\nVia: "
      "HTTP/1.1\tclockwise (c)\r\nVia: 1.1 clockwiser\r\n\r\n";
  RequestHead head;
  std::size_t scanned = 0;
  ASSERT_EQ(scan_request(input, {}, head, scanned), Progress::complete);
  EXPECT_EQ(times_passed(input, head), 2U);
}

std::string relayed(const std::string& input, ResponseContext context,
                    Method method = Method::get) {
  ResponseHead head;
  std::size_t scanned = 0;
  EXPECT_EQ(scan_response(input, {}, method, head, scanned), Progress::complete);
  if (context.body.kind == BodyKind::none) context.body = head.body;
  Gather out;
  rewrite_response(input, head, context, out);
  return text_of(out);
}

TEST(RewriteResponse, RelaysWhatItMayAndWritesFramingAnew) {
  EXPECT_EQ(relayed("HTTP/1.1 200 OK\r\nContent-Length: 02\r\nX-A: b\r\n\r\n", {}),
            "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\nVia: 1.1 clockwise\r\n\r\n");
  EXPECT_EQ(
      relayed("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", {}),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 clockwise\r\n\r\n");
  EXPECT_EQ(relayed("HTTP/1.0 200 OK\r\nA: b\r\n\r\n", {.keep_alive = false}),
            "HTTP/1.1 200 OK\r\nA: b\r\nVia: 1.0 clockwise\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(relayed("HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n", {}),
            "HTTP/1.1 299 \r\nContent-Length: 0\r\nVia: 1.1 clockwise\r\n\r\n");
}

TEST(RewriteResponse, RemovesHopByHopFields) {
  EXPECT_EQ(relayed("HTTP/1.1 200 OK\r\nConnection: X-Resp, keep-alive\r\nX-Resp: 1\r\nX-Keep: "
                    "1\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 3\r\nTrailer: a\r\nUpgrade: "
                    "h2\r\nContent-Length: 2\r\n\r\n",
                    {}),
            "HTTP/1.1 200 OK\r\nX-Keep: 1\r\nContent-Length: 2\r\nVia: 1.1 clockwise\r\n\r\n");
}

TEST(RewriteResponse, RelaysTheLengthOfWhatHasNoBody) {
  const ResponseContext no_body{.head_or_no_body = true};
  EXPECT_EQ(relayed("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", no_body, Method::head),
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nVia: 1.1 clockwise\r\n\r\n");
  EXPECT_EQ(relayed("HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n", no_body),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\nVia: 1.1 clockwise\r\n\r\n");
  EXPECT_EQ(relayed("HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n", no_body),
            "HTTP/1.1 204 No Content\r\nVia: 1.1 clockwise\r\n\r\n");
  EXPECT_EQ(relayed("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", no_body),
            "HTTP/1.1 204 No Content\r\nVia: 1.1 clockwise\r\n\r\n");
}

TEST(RewriteResponse, SpeaksToHttp10ClientsTheirWay) {
  EXPECT_EQ(relayed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", {.client_minor_version = 0}),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nVia: 1.1 clockwise\r\n"
            "Connection: keep-alive\r\n\r\n");
  EXPECT_EQ(
      relayed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
              {.client_minor_version = 0, .keep_alive = false, .body = {BodyKind::until_close, 0}}),
      "HTTP/1.1 200 OK\r\nVia: 1.1 clockwise\r\nConnection: close\r\n\r\n");
}

TEST(RewriteResponse, AddsDateOnlyWhereThereIsNone) {
  ResponseContext context;
  context.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  context.extra = "Clockwise-Server: a\r\n";
  EXPECT_EQ(
      relayed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", context),
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
      "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nVia: 1.1 clockwise\r\nClockwise-Server: a\r\n\r\n");
  EXPECT_EQ(relayed("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\n", context),
            "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\nVia: 1.1 clockwise\r\n"
            "Clockwise-Server: a\r\n\r\n");
}

TEST(RewriteInterim, PassesStatusAndFieldsOn) {
  const std::string input =
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 3\r\nConnection: x\r\nX: "
      "1\r\n\r\n";
  ResponseHead head;
  std::size_t scanned = 0;
  ASSERT_EQ(scan_response(input, {}, Method::get, head, scanned), Progress::complete);
  Gather out;
  rewrite_interim(input, head, out);
  EXPECT_EQ(text_of(out), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 clockwise\r\n\r\n");
}

TEST(Gather, WritesNumbersInDecimal) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  const std::string wanted = "a0b-9223372036854775808c18446744073709551615d200";
  for (const std::size_t before : {std::size_t{0}, Gather::kScratch - wanted.size()}) {
    const std::string filling(before, '-');
    Gather out;
    out.write(filling);
    out.write("a", 0, "b", kLeast, "c", kMost, "d", std::uint16_t{200});
    EXPECT_EQ(text_of(out), filling + wanted);
  }
}

TEST(Gather, IsReusedAfterASpill) {
  const std::string long_text(3000, 'a');
  Gather out;
  out.write(long_text);
  out.relay("b");
  EXPECT_EQ(text_of(out), long_text + "b");
  out.clear();
  EXPECT_EQ(out.size(), 0U);
  out.write("c");
  EXPECT_EQ(text_of(out), "c");
}

}  // namespace
}  // namespace clockwise::http
