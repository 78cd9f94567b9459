// Which route a request takes.
#include "proxy/routes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clockwise::proxy {
namespace {

config::Route route(std::string host, std::string path_prefix) {
  return {.host = std::move(host),
          .path_prefix = std::move(path_prefix),
          .key_prefix = {},
          .pool = "p",
          .cache = {}};
}

// Through the scanner, as the proxy has it.
std::optional<std::size_t> taken(const std::vector<config::Route>& routes,
                                 const std::string& target, const std::string& host) {
  const std::string octets = "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  http::RequestHead head;
  std::size_t scanned = 0;
  EXPECT_EQ(http::scan_request(octets, {}, head, scanned), http::Progress::complete) << octets;
  return first_match(routes, head);
}

bool matches(const config::Route& one, const std::string& target, const std::string& host) {
  return taken({one}, target, host).has_value();
}

TEST(Routes, TheFirstThatMatchesIsTaken) {
  const std::vector<config::Route> routes = {route("img.example.com", "/thumb/"),
                                             route("img.example.com", ""), route("", "/thumb/")};
  EXPECT_EQ(taken(routes, "/thumb/1", "img.example.com"), 0U);
  EXPECT_EQ(taken(routes, "/full/1", "img.example.com"), 1U);
  EXPECT_EQ(taken(routes, "/thumb/1", "example.com"), 2U);
  EXPECT_EQ(taken(routes, "/", "example.com"), std::nullopt);
  EXPECT_EQ(taken({}, "/", "example.com"), std::nullopt);
}

TEST(Routes, AHostIsComparedWithoutPortCaseAndADotAtItsEnd) {
  const config::Route one = route("img.example.com", "");
  for (const char* host : {"img.example.com", "IMG.Example.com", "img.example.com:8080",
                           "img.example.com.", "img.example.com.:80", "img.example.com:"})
    EXPECT_TRUE(matches(one, "/", host)) << host;
  for (const char* host : {"example.com", "a.img.example.com", "img.example.com.au", "img", ""})
    EXPECT_FALSE(matches(one, "/", host)) << host;
  EXPECT_TRUE(matches(route("[2001:db8::1]", ""), "/", "[2001:DB8::1]:80"));
  EXPECT_FALSE(matches(route("[2001:db8::1]", ""), "/", "[2001:db8::2]"));
}

TEST(Routes, AWildcardStandsForOneLabelOrMore) {
  const config::Route one = route("*.example.com", "");
  for (const char* host : {"a.example.com", "A.B.EXAMPLE.COM:80", "a.b.c.example.com."})
    EXPECT_TRUE(matches(one, "/", host)) << host;
  for (const char* host : {"example.com", ".example.com", "badexample.com", "a.example.com.au"})
    EXPECT_FALSE(matches(one, "/", host)) << host;
}

TEST(Routes, APathIsComparedAsItCame) {
  const config::Route one = route("", "/thumb/");
  for (const char* target : {"/thumb/", "/thumb/1?q", "http://h/thumb/1"})
    EXPECT_TRUE(matches(one, target, "h")) << target;
  for (const char* target : {"/thumb", "/thumb?/", "/Thumb/1", "/%74humb/1", "//thumb/1",
                             "/a/../thumb/1", "/?/thumb/", "http://h"})
    EXPECT_FALSE(matches(one, target, "h")) << target;
  EXPECT_FALSE(taken({route("", "/?")}, "/x?", "h"));
}

TEST(Routes, TheAuthorityOfTheTargetIsTheHost) {
  EXPECT_TRUE(matches(route("a.example", ""), "http://a.example:81/", "b.example"));
  EXPECT_FALSE(matches(route("b.example", ""), "http://a.example:81/", "b.example"));
}

TEST(Routes, WithoutAHostOnlyThePathCounts) {
  http::RequestHead head;
  std::size_t scanned = 0;
  const std::string octets = "GET /a HTTP/1.0\r\n\r\n";
  ASSERT_EQ(http::scan_request(octets, {}, head, scanned), http::Progress::complete);
  EXPECT_EQ(first_match({route("h", ""), route("*.h", ""), route("", "/a")}, head), 2U);
}

}  // namespace
}  // namespace clockwise::proxy
