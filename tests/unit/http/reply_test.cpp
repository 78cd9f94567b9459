#include "http/reply.h"

#include <gtest/gtest.h>

#include <array>

#include "http/date.h"

namespace clockwise::http {
namespace {

std::string rendered(const Reply& reply) {
  std::string out = "leftover";
  render(reply, out);
  return out;
}

TEST(Reply, SaysWhatIsWrongAndCloses) {
  EXPECT_EQ(
      rendered({.status = 400, .text = "two Host fields", .proxy_error = "http_request_error"}),
      "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
      "Content-Length: 33\r\nCache-Control: no-store\r\nVia: 1.1 clockwise\r\n"
      "Proxy-Status: clockwise; error=http_request_error\r\nConnection: close\r\n\r\n"
      "400 Bad Request: two Host fields\n");
}

TEST(Reply, SpeaksJsonToThosePreferringIt) {
  EXPECT_EQ(rendered({.status = 503,
                      .text = "no \"usable\" server",
                      .proxy_error = "destination_unavailable",
                      .retry_after = 2,
                      .json = true,
                      .close = false,
                      .date = "Sun, 06 Nov 1994 08:49:37 GMT",
                      .extra = "Clockwise-Server: a\r\n"}),
            "HTTP/1.1 503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\nContent-Length: 82\r\nCache-Control: no-store\r\n"
            "Via: 1.1 clockwise\r\nProxy-Status: clockwise; error=destination_unavailable\r\n"
            "Retry-After: 2\r\nClockwise-Server: a\r\n\r\n"
            "{\"error\": {\"code\": \"destination_unavailable\", "
            "\"message\": \"no \\\"usable\\\" server\"}}\n");
}

TEST(Reply, LeavesTheBodyOutForHead) {
  const std::string head = rendered({.status = 502, .head = true});
  EXPECT_TRUE(head.ends_with("Connection: close\r\n\r\n")) << head;
  EXPECT_NE(head.find("Content-Length: 16\r\n"), std::string::npos) << head;
}

TEST(Reply, KeepsAnHttp10ConnectionOnlyWhenSaid) {
  EXPECT_NE(rendered({.status = 404, .client_minor_version = 0, .close = false})
                .find("Connection: keep-alive\r\n"),
            std::string::npos);
}

TEST(Reply, SaysWhichMethodsThereAre) {
  const std::string text = rendered({.status = 405});
  EXPECT_TRUE(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\n")) << text;
  EXPECT_NE(text.find("\r\nAllow: GET, HEAD, "), std::string::npos) << text;
}

// What the proxy says must pass its own scanner.
TEST(Reply, IsAWellFormedAnswer) {
  constexpr std::array<std::uint16_t, 13> kStatuses = {400, 405, 408, 413, 414, 417, 431,
                                                       500, 501, 502, 503, 504, 505};
  for (const std::uint16_t status : kStatuses) {
    const std::string text =
        rendered({.status = status, .text = "why", .proxy_error = "x", .retry_after = 1});
    ResponseHead head;
    std::size_t scanned = 0;
    ASSERT_EQ(scan_response(text, {}, Method::get, head, scanned), Progress::complete);
    EXPECT_EQ(head.status, status);
    EXPECT_EQ(head.body.length, text.size() - head.size);
    EXPECT_FALSE(head.keep_alive);
    EXPECT_NE(reason_phrase(status), "Error") << status;
  }
}

// RFC 9110 5.6.7 has the first one.
TEST(Date, IsAnImfFixdate) {
  EXPECT_EQ(Date(784111777).text(), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(Date(0).text(), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(Date(951782400).text(), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(Date(4102444799).text(), "Thu, 31 Dec 2099 23:59:59 GMT");
}

}  // namespace
}  // namespace clockwise::http
