// Requests out of access logs.
#include "cli/key_log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace clockwise::cli {
namespace {

std::optional<std::string> target_of(std::string_view line, KeyFormat format) {
  LogReader reader(format);
  const auto request = reader.request(line);
  if (!request) return std::nullopt;
  return std::string(request->uri);
}

TEST(KeyLog, DetectsTheFormat) {
  const std::pair<const char*, KeyFormat> rows[] = {
      {"/a?b=c", KeyFormat::plain},
      {" a \"b\" ", KeyFormat::plain},
      {"{tag}:42", KeyFormat::plain},
      {R"({"half":)", KeyFormat::plain},
      {R"(h - - [d] "GET /a HTTP/1.1" 200 7)", KeyFormat::combined},
      {R"(h - - [d] "-" 400 0 "-" "-")", KeyFormat::combined},
      {R"({"target":"/a"})", KeyFormat::json},
      {R"({"msg":"started","level":"info"})", KeyFormat::json},
  };
  for (const auto& [line, format] : rows) EXPECT_EQ(detect_key_format(line), format) << line;
}

TEST(KeyLog, DetectsTheFormatOverTheFirstLines) {
  const std::string combined = R"(h - - [d] "GET /a HTTP/1.1" 200 7)", json = R"({"target":"/a"})";
  const std::pair<std::vector<std::string>, KeyFormat> rows[] = {
      {{}, KeyFormat::plain},
      {{"/a", "/b"}, KeyFormat::plain},
      {{R"(.1" 200 7 "-" "curl")", combined}, KeyFormat::combined},
      {{R"(rget":"/cut"})", json, json}, KeyFormat::json},
      {{"# a comment", "# another", "# a third", combined}, KeyFormat::combined},
      {{json, combined, combined}, KeyFormat::combined},
      {{combined, json, json}, KeyFormat::json},
      {{combined, json}, KeyFormat::combined},
      {{json, combined}, KeyFormat::json},
  };
  for (const auto& [lines, format] : rows)
    EXPECT_EQ(detect_key_format(lines), format) << testing::PrintToString(lines);
}

struct Row {
  const char* name;
  const char* line;
  std::optional<std::string> target;
};

TEST(KeyLog, FindsTheTargetOfACombinedLine) {
  const Row rows[] = {
      {"combined",
       R"(10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET /a/../b?x=%20 HTTP/1.1" 200 7 "-" "curl")",
       "/a/../b?x=%20"},
      {"common, IPv6, a user with a space",
       R"(fd00::1 - some body [10/Oct/2026:13:55:36 +0000] "PUT /a HTTP/1.0" 200 7)", "/a"},
      {"escaped octets", R"(h - - [d] "GET /\x22q\x22/\\/\xc3\xa9 HTTP/1.1" 200 7)",
       "/\"q\"/\\/\xc3\xa9"},
      {"an escaped quote", R"(h - - [d] "GET /\"q HTTP/1.1" 200 7)", "/\"q"},
      {"an escape cut short stays as it is", R"(h - - [d] "GET /a\x2 HTTP/1.1" 1)", "/ax2"},
      {"target with a space", R"(h - - [d] "GET /a b HTTP/1.1" 400 7)", "/a b"},
      {"without a version", R"(h - - [d] "GET /old" 200 7)", "/old"},
      {"absolute-form", R"(h - - [d] "GET http://www.example.com:81/a?b HTTP/1.1" 200 7)", "/a?b"},
      {"absolute-form without a path", R"(h - - [d] "GET http://h HTTP/1.1" 200 7)", "/"},
      {"a query that holds an address", R"(h - - [d] "GET /a?to=http://h/b HTTP/1.1" 200 7)",
       "/a?to=http://h/b"},
      {"request that could not be read", R"(h - - [d] "-" 400 0 "-" "-")", std::nullopt},
      {"bytes of a TLS hello", R"(h - - [d] "\x16\x03\x01" 400 0)", std::nullopt},
      {"no log line", "no log line", std::nullopt},
      {"cut off", R"(h - - [d] "GET /cut)", std::nullopt},
      {"empty", "", std::nullopt},
  };
  for (const Row& row : rows)
    EXPECT_EQ(target_of(row.line, KeyFormat::combined), row.target) << row.name;
}

TEST(KeyLog, FindsTheTargetOfAJsonLine) {
  const Row rows[] = {
      {"ours", R"({"time":"t","method":"GET","target":"/a\"b\u00e9","status":200})",
       "/a\"b\xc3\xa9"},
      {"nginx: request_uri goes before the normalised uri",
       R"({"uri":"/b","request_uri":"/a/../b?x"})", "/a/../b?x"},
      {"nginx: the request line goes before uri", R"({"uri":"/b","request":"GET /r?x HTTP/2.0"})",
       "/r?x"},
      {"nginx: uri and args", R"({"uri":"/b","args":"x=1&y"})", "/b?x=1&y"},
      {"nginx: uri and no args", R"({"uri":"/b","args":""})", "/b"},
      {"nginx without escape=json", R"({"request_uri":"/\x22q"})", "/\"q"},
      {"Caddy",
       R"({"ts":1.5,"request":{"method":"GET","host":"h","uri":"/c?d",)"
       R"("headers":{"A":["{","}"]}},"status":200})",
       "/c?d"},
      {"Envoy", R"({"method":"GET","path":"/e?f","authority":"h","bytes_sent":7})", "/e?f"},
      {"Traefik", R"({"RequestMethod":"GET","RequestPath":"/t?u","RequestHost":"h"})", "/t?u"},
      {"blanks, nested values, numbers, null",
       R"({ "a" : {"target": "/no"}, "b":[1,"]"], "c" : null , "n":-1.5e3, "target" : "/y" } )",
       "/y"},
      {"two halves of a code point", R"({"target":"/\ud83d\ude00\/\t"})", "/\xf0\x9f\x98\x80/\t"},
      {"an unpaired half", R"({"target":"/\ud83dx"})", "/\xed\xa0\xbdx"},
      {"no field that we know", R"({"msg":"started"})", std::nullopt},
      {"cut off", R"({"target":"/cut)", std::nullopt},
      {"cut off behind the target", R"({"target":"/cut","status":2)", std::nullopt},
      {"no string", R"({"target":7})", std::nullopt},
      {"an array", R"(["/a"])", std::nullopt},
      {"empty", "", std::nullopt},
      {"one brace", "{", std::nullopt},
      {"a lone backslash at the end", R"({"target":"/a\)", std::nullopt},
      {"a comma too many", R"({"target":"/a",,"b":1})", std::nullopt},
  };
  for (const Row& row : rows)
    EXPECT_EQ(target_of(row.line, KeyFormat::json), row.target) << row.name;
}

TEST(KeyLog, TellsWhatElseALineHasOfTheRequest) {
  LogReader combined(KeyFormat::combined);
  auto request = combined.request(R"(10.0.0.9 - - [d] "PUT https://h:8/a HTTP/1.1" 200 7)");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->client_ip, "10.0.0.9");
  EXPECT_EQ(request->method, "PUT");
  EXPECT_EQ(request->scheme, "https");
  EXPECT_EQ(request->host, "h:8");

  LogReader json(KeyFormat::json);
  request = json.request(
      R"({"remote_addr":"fd00::1","request_method":"HEAD","scheme":"http","host":"h","uri":"/"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->client_ip, "fd00::1");
  EXPECT_EQ(request->method, "HEAD");
  EXPECT_EQ(request->scheme, "http");
  EXPECT_EQ(request->host, "h");
}

TEST(KeyLog, FindsTheVirtualHostBeforeTheClient) {
  struct Peers {
    const char* line;
    std::string_view host, client, scheme;
  };
  const Peers rows[] = {
      {R"(www.example.com:443 10.0.0.9 - - [d] "GET /a HTTP/1.1" 200 7 "-" "curl")",
       "www.example.com:443", "10.0.0.9", "https"},
      {R"(www.example.com:80 fd00::1 - a user [d] "GET /a HTTP/1.1" 200 7)", "www.example.com:80",
       "fd00::1", "http"},
      {R"(www.example.com:8080 client.example.net - - [d] "GET /a HTTP/1.1" 200 7)",
       "www.example.com:8080", "client.example.net", ""},
      {R"(www.example.com 10.0.0.9 - - [d] "GET /a HTTP/1.1" 200 7)", "www.example.com", "10.0.0.9",
       ""},
      {R"([fd00::2]:443 10.0.0.9 - - [d] "GET /a HTTP/1.1" 200 7)", "[fd00::2]:443", "10.0.0.9",
       "https"},
      {R"(www.example.com:80 10.0.0.9 - - [d] "GET https://h:8/a HTTP/1.1" 200 7)", "h:8",
       "10.0.0.9", "https"},
      // The client alone, whatever identity and user follow it.
      {R"(10.0.0.9 - - [d] "GET /a HTTP/1.1" 200 7)", "", "10.0.0.9", ""},
      {R"(fd00::80 ident user [d] "GET /a HTTP/1.1" 200 7)", "", "fd00::80", ""},
      {R"(client.example.net ident user [d] "GET /a HTTP/1.1" 200 7)", "", "client.example.net",
       ""},
      {R"(h:80 [d] "GET /a HTTP/1.1" 200 7)", "", "h:80", ""},
      {R"(h [d] "GET /a HTTP/1.1" 200 7)", "", "h", ""},
  };
  LogReader reader(KeyFormat::combined);
  for (const Peers& row : rows) {
    const auto request = reader.request(row.line);
    ASSERT_TRUE(request) << row.line;
    EXPECT_EQ(request->host, row.host) << row.line;
    EXPECT_EQ(request->client_ip, row.client) << row.line;
    EXPECT_EQ(request->scheme, row.scheme) << row.line;
  }
}

}  // namespace
}  // namespace clockwise::cli
