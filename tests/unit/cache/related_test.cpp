#include "cache/related.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>

namespace clockwise::cache {
namespace {

struct Row {
  const char* reference;
  const char* expected;  // null: nothing
  const char* uri = "/a/b/c?q";
  const char* authority = "example.com";
};

void check(std::span<const Row> rows) {
  for (const Row& row : rows) {
    const auto uri = same_origin_uri(row.reference, row.authority, row.uri);
    EXPECT_EQ(uri,
              row.expected == nullptr ? std::nullopt : std::optional<std::string>(row.expected))
        << row.reference << " from " << row.uri;
  }
}

// RFC 9111 4.4: another origin's answers are not for this one to judge.
TEST(Related, OnlyOfTheSameOrigin) {
  const Row rows[] = {
      {"http://example.com/x?y", "/x?y"},
      {"HTTP://EXAMPLE.com/x", "/x"},
      {"http://example.com:80/x", "/x"},
      {"http://example.com:/x", "/x"},
      {"http://example.com", "/"},
      {"http://example.com?y", "/?y"},
      {"http://example.com#f", "/"},
      {"http://example.com:8080/x", nullptr},
      {"http://example.org/x", nullptr},
      {"http://example.com.org/x", nullptr},
      {"http://sub.example.com/x", nullptr},
      {"http://example.com@evil.org/x", nullptr},
      {"http://user@example.com/x", nullptr},
      {"https://example.com/x", nullptr},
      {"ftp://example.com/x", nullptr},
      {"mailto:a@example.com", nullptr},
      {"javascript:alert(1)", nullptr},
      {"http:x", nullptr},
      {"http:/x", nullptr},
      {"http:///x", nullptr},
      {"http:", nullptr},
      {"//example.com/x", "/x"},
      {"//example.com", "/"},
      {"//example.org/x", nullptr},
      {"///x", nullptr},
      {"http://example.com/x", nullptr, "/", "example.com:8080"},
      {"http://example.com:8080/x", "/x", "/", "example.com:8080"},
      {"http://example.com/x", "/x", "/", "example.com:80"},
      {"http://[::1]:8080/x", "/x", "/", "[::1]:8080"},
      {"http://[::1]/x", "/x", "/", "[::1]:80"},
      {"http://[::1]/x", nullptr, "/", "[::1]:8080"},
      {"http://[::1]/x", nullptr, "/", "[::80]"},
      {"http://example.com/x", nullptr, "/", ""},
      {"//", nullptr, "/", ""},
  };
  check(rows);
}

// RFC 3986 5.2, and the examples of 5.4 as far as they stay with us.
TEST(Related, ReferencesAreResolved) {
  constexpr const char* kBase = "/b/c/d;p?q";
  const Row rows[] = {
      {"g", "/b/c/g", kBase},
      {"./g", "/b/c/g", kBase},
      {"g/", "/b/c/g/", kBase},
      {"/g", "/g", kBase},
      {"?y", "/b/c/d;p?y", kBase},
      {"g?y", "/b/c/g?y", kBase},
      {"#s", "/b/c/d;p?q", kBase},
      {"g#s", "/b/c/g", kBase},
      {"g?y#s", "/b/c/g?y", kBase},
      {";x", "/b/c/;x", kBase},
      {"g;x=1/./y", "/b/c/g;x=1/y", kBase},
      {"g;x=1/../y", "/b/c/y", kBase},
      {"", "/b/c/d;p?q", kBase},
      {".", "/b/c/", kBase},
      {"./", "/b/c/", kBase},
      {"..", "/b/", kBase},
      {"../", "/b/", kBase},
      {"../g", "/b/g", kBase},
      {"../..", "/", kBase},
      {"../../g", "/g", kBase},
      {"../../../g", "/g", kBase},
      {"/./g", "/g", kBase},
      {"/../g", "/g", kBase},
      {"g.", "/b/c/g.", kBase},
      {".g", "/b/c/.g", kBase},
      {"g..", "/b/c/g..", kBase},
      {"..g", "/b/c/..g", kBase},
      {"./../g", "/b/g", kBase},
      {"./g/.", "/b/c/g/", kBase},
      {"g/./h", "/b/c/g/h", kBase},
      {"g/../h", "/b/c/h", kBase},
      {"g?y/./x", "/b/c/g?y/./x", kBase},
      {"g?y/../x", "/b/c/g?y/../x", kBase},
      {"g#s/../x", "/b/c/g", kBase},
      {"./x/../a?b", "/a?b", "/"},
      {"http://example.com/x/./../a?b/../c", "/a?b/../c", "/"},
      {"//example.com/x/..", "/", "/"},
      {"a//b/..//c", "/a///c", "/"},
      {"a//../b", "/a/b", "/"},
      {"./a:b", "/a:b", "/x"},
      {"a/b:c", "/a/b:c", "/x"},
      {"a?b:c", "/a?b:c", "/x"},
      {"?b:c", "/x?b:c", "/x"},
      {"a:b", nullptr, "/x"},
      {"/%2e%2e/a", "/%2e%2e/a", "/"},  // as received, like keys
      {"g", "/g", "*"},
      {"?y", "/?y", ""},
  };
  check(rows);
}

}  // namespace
}  // namespace clockwise::cache
