// The normal forms of a target: what is one key and what stays two.
#include "http/normalize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace clockwise::http {
namespace {

using namespace std::string_literals;

std::string decoded(std::string_view path) {
  std::string out;
  append_decoded_path(path, out);
  return out;
}

std::string normal(std::string_view uri, const std::vector<std::string>& ignore = {}) {
  std::string out;
  append_normal_uri(uri, ignore, out);
  return out;
}

struct Row {
  std::string from;
  std::string to;
};

TEST(DecodedPath, ReadsAPathAsNginxDoes) {
  const std::vector<Row> rows = {
      {"", ""},
      {"/", "/"},
      {"*", "*"},
      {"/a", "/a"},
      {"/a/", "/a/"},
      // Decoded once.
      {"/a%20b", "/a b"},
      {"/caf%C3%A9", "/caf\xc3\xa9"},
      {"/caf\xc3\xa9", "/caf\xc3\xa9"},
      {"/%2541", "/%41"},
      {"/%25%34%31", "/%41"},
      {"/a%3Fb%23c", "/a?b#c"},
      {"/a%00b", "/a\0b"s},
      {"/a%0D%0Ab", "/a\r\nb"},
      {"/%41%5a%7E", "/AZ~"},
      {"/a+b", "/a+b"},
      // No escape stays what it is.
      {"/%", "/%"},
      {"/%4", "/%4"},
      {"/%zz%4g", "/%zz%4g"},
      {"/%%41", "/%A"},
      // Slashes.
      {"//", "/"},
      {"//a///b//", "/a/b/"},
      {"/a%2Fb", "/a/b"},
      {"/a%2f%2F/b", "/a/b"},
      // Dot segments.
      {"/.", "/"},
      {"/./", "/"},
      {"/a/./b/.", "/a/b/"},
      {"/a/b/../c", "/a/c"},
      {"/a/b/..", "/a/"},
      {"/a/..", "/"},
      {"/a//../b", "/b"},
      {"/a/%2e%2E/b", "/b"},
      {"/a%2F..%2Fb", "/b"},
      {"/a/%2e/b", "/a/b"},
      {"/a/%252e%252e/b", "/a/%2e%2e/b"},
      {"/..", "/"},
      {"/../..//../a", "/a"},
      {"/a/../../b", "/b"},
      {"/.../..a/a../.b", "/.../..a/a../.b"},
      {"a/../b", "/b"},
      {"..", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(decoded(row.from), row.to) << row.from;
}

TEST(DecodedPath, LeavesWhatStandsBeforeItAlone) {
  std::string out = "/x/y/";
  append_decoded_path("/../../a", out);
  EXPECT_EQ(out, "/x/y//a");
  out = "//.";
  append_decoded_path("/./b", out);
  EXPECT_EQ(out, "//./b");
}

TEST(DecodedPath, LeavesItsRoot) {
  for (const char* path : {"/..", "/../a", "/a/../..", "/a/../../b", "..", "../", "/%2e%2E/a",
                           "/a%2f..%2F..", "//..//", "/./../a", "/a//../..", "a/../.."})
    EXPECT_TRUE(leaves_root(path)) << path;
  for (const char* path :
       {"", "/", "/a", "/a/..", "/a/../", "a/..", "/a/../b/..", "/...", "/.../..", "/.a/..",
        "/a./..", "/..a", "/%252e%252e/", "/%2", "/%2e/", "/a/b/../../c", "/.", "/./."})
    EXPECT_FALSE(leaves_root(path)) << path;
}

TEST(DecodedPath, IsNoLongerThanThePathAndHasNoDotSegmentLeft) {
  rc::check([] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
        std::vector<std::string>{"/", ".", "..", "a", "%2e", "%2F", "%", "%25"}));
    std::string path = "/";
    for (const std::string& piece : pieces) path += piece;
    const std::string out = decoded(path);
    RC_ASSERT(out.size() <= path.size());
    RC_ASSERT(out.starts_with('/'));
    const std::string closed = out + '/';
    for (const char* gone : {"//", "/./", "/../"}) {
      const auto at = closed.find(gone);
      // A slash may have been added to one that ends the path.
      RC_ASSERT(at == std::string::npos || at + 2 == closed.size());
    }
  });
}

TEST(NormalUri, MakesOneOfWhatMeansOne) {
  const std::vector<Row> rows = {
      {"", ""},
      {"/", "/"},
      {"*", "*"},
      // Escapes.
      {"/%41%7e%2D", "/A~-"},
      {"/%c3%a9", "/%C3%A9"},
      {"/a%2fb", "/a%2Fb"},
      {"/a%3fb?c%3Dd", "/a%3Fb?c%3Dd"},
      {"/%2541", "/%2541"},
      {"/%00", "/%00"},
      {"/caf\xc3\xa9", "/caf\xc3\xa9"},
      {"/a%20b+c", "/a%20b+c"},
      // One that is malformed keeps its neighbours as they are: two texts never become one by it.
      {"/%%41", "/%%41"},
      {"/%41%zz", "/%41%zz"},
      {"/%41%4", "/%41%4"},
      {"/%41?%42=%zz", "/A?B=%zz"},
      // The path beyond its escapes.
      {"//a/./b/../c", "//a/./b/../c"},
      // Order.
      {"/?b=2&a=1", "/?a=1&b=2"},
      {"/?a=2&a=1", "/?a=1&a=2"},
      {"/?b&a=&a", "/?a&a=&b"},
      {"/?a=1&a=1", "/?a=1&a=1"},
      {"/?b=1?&a=?", "/?a=?&b=1?"},
      {"/?%62=1&a=2", "/?a=2&b=1"},
      {"/?a=b=c", "/?a=b=c"},
      // What is empty.
      {"/?", "/"},
      {"/?&&", "/"},
      {"/?&a&&b&", "/?a&b"},
      {"/?=", "/?="},
  };
  for (const Row& row : rows) EXPECT_EQ(normal(row.from), row.to) << row.from;
}

TEST(NormalUri, LeavesOutWhatIsIgnored) {
  const std::vector<std::string> ignore = {"utm_*", "sid", "a b"};
  const std::vector<Row> rows = {
      {"/?utm_source=x&id=1&utm_=y", "/?id=1"}, {"/?utm_source=x", "/"},
      {"/?utm=x&Utm_a=1", "/?Utm_a=1&utm=x"},   {"/?sid=1&sid&side=2", "/?side=2"},
      {"/?%75tm%5Fsource=%zz&b", "/?b"},        {"/?x=utm_a", "/?x=utm_a"},
  };
  for (const Row& row : rows) EXPECT_EQ(normal(row.from, ignore), row.to) << row.from;
  EXPECT_EQ(normal("/a?b&c", {"*"}), "/a");
}

TEST(NormalUri, LeavesWhatStandsBeforeItAlone) {
  std::string out = "h?z=1&";
  append_normal_uri("/?b&a", {}, out);
  EXPECT_EQ(out, "h?z=1&/?a&b");
}

TEST(NormalUri, DoesNotDependOnTheOrderAndIsItsOwnNormalForm) {
  rc::check([](std::vector<std::string> parameters) {
    const auto join = [&] {
      std::string uri = "/p?";
      for (const std::string& parameter : parameters) uri += parameter + '&';
      return uri;
    };
    const std::string once = normal(join());
    RC_ASSERT(normal(once) == once);
    std::ranges::reverse(parameters);
    RC_ASSERT(normal(join()) == once);
    std::ranges::sort(parameters);
    RC_ASSERT(normal(join()) == once);
  });
}

TEST(NormalUri, TakesThousandsOfParameters) {
  EXPECT_EQ(normal("/?" + std::string(32 * 1024, '&')), "/");
  std::string uri = "/?";
  std::string sorted;
  for (int i = 999; i >= 0; --i) uri += "p" + std::to_string(1000 + i) + "&";
  for (int i = 0; i < 1000; ++i) sorted += "&p" + std::to_string(1000 + i);
  EXPECT_EQ(normal(uri), "/?" + sorted.substr(1));
}

}  // namespace
}  // namespace clockwise::http
