// Keys out of plain lists and access logs.
#include "cli/key_log.h"

#include <gtest/gtest.h>

namespace clockwise::cli {
namespace {

struct Row {
  const char* name;
  const char* line;
  KeyFormat format;
  std::optional<std::string> key;
};

TEST(KeyLog, DetectsTheFormatAndFindsTheKey) {
  const Row rows[] = {
      {"plain key", "/a?b=c", KeyFormat::plain, "/a?b=c"},
      {"plain key with spaces and quotes", " a \"b\" ", KeyFormat::plain, " a \"b\" "},
      {"plain key that begins like JSON", "{tag}:42", KeyFormat::plain, "{tag}:42"},
      {"carriage return belongs to the key", "/a\r", KeyFormat::plain, "/a\r"},
      {"combined",
       R"(10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET /a/../b?x=%20 HTTP/1.1" 200 7 "-" "curl")",
       KeyFormat::combined, "/a/../b?x=%20"},
      {"common, IPv6, a user with a space",
       R"(fd00::1 - some body [10/Oct/2026:13:55:36 +0000] "PUT /a HTTP/1.0" 200 7)",
       KeyFormat::combined, "/a"},
      {"escaped octets", R"(h - - [d] "GET /\x22q\x22/\\/\xc3\xa9 HTTP/1.1" 200 7)",
       KeyFormat::combined, "/\"q\"/\\/\xc3\xa9"},
      {"target with a space", R"(h - - [d] "GET /a b HTTP/1.1" 400 7)", KeyFormat::combined,
       "/a b"},
      {"without a version", R"(h - - [d] "GET /old" 200 7)", KeyFormat::combined, "/old"},
      {"request that could not be read", R"(h - - [d] "-" 400 0 "-" "-")", KeyFormat::combined,
       std::nullopt},
      {"bytes of a TLS hello", R"(h - - [d] "\x16\x03\x01" 400 0)", KeyFormat::combined,
       std::nullopt},
      {"own JSON", R"({"time":"t","method":"GET","target":"/a\"b\u00e9","status":200})",
       KeyFormat::json, "/a\"b\xc3\xa9"},
      {"request_uri goes before the normalised uri", R"({"uri":"/b","request_uri":"/a/../b?x"})",
       KeyFormat::json, "/a/../b?x"},
      {"request line in JSON", R"({"request":"GET /r HTTP/2.0"})", KeyFormat::json, "/r"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(detect_key_format(row.line), row.format) << row.name;
    EXPECT_EQ(key_of_line(row.line, row.format), row.key) << row.name;
  }
}

TEST(KeyLog, LinesWithoutAKeyYieldNothing) {
  EXPECT_EQ(key_of_line("", KeyFormat::plain), std::nullopt);
  EXPECT_EQ(key_of_line("", KeyFormat::json), std::nullopt);
  EXPECT_EQ(key_of_line("no log line", KeyFormat::combined), std::nullopt);
  EXPECT_EQ(key_of_line(R"(h - - [d] "GET /cut)", KeyFormat::combined), std::nullopt);
  EXPECT_EQ(key_of_line(R"({"target":"/cut)", KeyFormat::json), std::nullopt);
  EXPECT_EQ(key_of_line(R"({"target":7})", KeyFormat::json), std::nullopt);
  EXPECT_EQ(key_of_line(R"(["/a"])", KeyFormat::json), std::nullopt);
}

TEST(KeyLog, AnEscapeCutAtTheEndStaysAsItIs) {
  EXPECT_EQ(key_of_line(R"(h - - [d] "GET /a\x2 HTTP/1.1" 1)", KeyFormat::combined), "/ax2");
}

}  // namespace
}  // namespace clockwise::cli
