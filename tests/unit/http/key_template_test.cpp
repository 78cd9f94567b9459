// What each placeholder of a key stands for, octet by octet, and what is no template.
#include "http/key_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace clockwise::http {
namespace {

using testing::HasSubstr;

// The key of a request by a template, through the scanner as the proxy does it.
std::string key_of(std::string_view text, std::string_view head,
                   const std::vector<std::string>& ignore = {}) {
  const auto made = KeyTemplate::parse(text, ignore);
  if (!made) return "error: " + made.error().message;
  RequestHead request;
  std::size_t scanned = 0;
  EXPECT_EQ(scan_request(head, {}, request, scanned), Progress::complete) << head;
  std::string scratch = "left over";
  return std::string(made->render({.uri = request.uri,
                                   .host = request.authority,
                                   .scheme = "http",
                                   .method = request.method,
                                   .client_ip = "192.0.2.7",
                                   .octets = head,
                                   .fields = request.fields},
                                  scratch));
}

std::string get(std::string_view target, std::string_view lines = {}) {
  std::string head = "GET ";
  head.append(target).append(" HTTP/1.1\r\nHost: Img.Example.COM:8080\r\n");
  return head.append(lines).append("\r\n");
}

struct Row {
  std::string text;
  std::string key;
};

TEST(KeyTemplate, TakesThePartsOfARequestAsTheyAre) {
  const std::string head = get("/a%2fB//./c?x=%41&y=&x=2&&z?=1");
  const std::vector<Row> rows = {
      {"", "/a%2fB//./c?x=%41&y=&x=2&&z?=1"},
      {"{uri}", "/a%2fB//./c?x=%41&y=&x=2&&z?=1"},
      {"{path}", "/a%2fB//./c"},
      {"{query}", "x=%41&y=&x=2&&z?=1"},
      {"{query:x}", "%41"},
      {"{query:z?}", "1"},
      {"{method}", "GET"},
      {"{scheme}", "http"},
      {"{client_ip}", "192.0.2.7"},
      {"{host}", "img.example.com"},
      {"{header:HOST}", "Img.Example.COM:8080"},
      {"{path:decoded}", "/a/B/c"},
      {"{uri:normalized}", "/a%2FB//./c?x=2&x=A&y=&z?=1"},
      {"{scheme}://{host}{uri}", "http://img.example.com/a%2fB//./c?x=%41&y=&x=2&&z?=1"},
      {"{path:decoded}?{query}", "/a/B/c?x=%41&y=&x=2&&z?=1"},
      {"v1|{method}|{query:x}|", "v1|GET|%41|"},
      {"literal", "literal"},
      {"{path}{path:decoded}{path}", "/a%2fB//./c/a/B/c/a%2fB//./c"},
  };
  for (const Row& row : rows) EXPECT_EQ(key_of(row.text, head), row.key) << row.text;
}

TEST(KeyTemplate, FallsBackToTheTargetWhereTheKeyIsEmpty) {
  for (const char* text : {"{query:none}", "{query:y}", "{header:X-None}", "{cookie:none}",
                           "{query:none}{cookie:none}"})
    EXPECT_EQ(key_of(text, get("/a?y=")), "/a?y=") << text;
  EXPECT_EQ(key_of("{query}", get("/a")), "/a");
  EXPECT_EQ(key_of("{query}", get("/a?")), "/a?");
  EXPECT_EQ(key_of("{host}", "GET /a HTTP/1.0\r\n\r\n"), "/a");
  // A literal makes a key of its own.
  EXPECT_EQ(key_of("k:{query:none}", get("/a")), "k:");
}

TEST(KeyTemplate, GivesOneKeyForAbsoluteFormAndOriginForm) {
  for (const char* text : {"{uri}", "{path}", "{query}", "{host}{uri}", "{scheme}{uri}",
                           "{query:q}", "{path:decoded}", "{uri:normalized}", "{header:host}"}) {
    for (const char* uri : {"/", "/a//b?q=%20", "/?q", "/..%2f"}) {
      const std::string absolute =
          "GET http://Img.Example.COM:8080" + std::string(uri) + " HTTP/1.1\r\nHost: other\r\n\r\n";
      EXPECT_EQ(key_of(text, absolute), key_of(text, get(uri))) << text << uri;
    }
  }
  EXPECT_EQ(key_of("{uri}", "GET http://h HTTP/1.1\r\nHost: h\r\n\r\n"), "/");
  EXPECT_EQ(key_of("{uri}", "GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n"), "/?q");
}

TEST(KeyTemplate, WritesAHostInOneWay) {
  const std::vector<Row> rows = {
      {"a.example", "a.example"},         {"A.Example:80", "a.example"},
      {"a.example:", "a.example"},        {"a.example.", "a.example"},
      {"a.example.:80", "a.example"},     {"192.0.2.1:80", "192.0.2.1"},
      {"[2001:DB8::1]", "[2001:db8::1]"}, {"[::1]:8080", "[::1]"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(key_of("{host}", "GET / HTTP/1.1\r\nHost: " + row.text + "\r\n\r\n"), row.key);
}

TEST(KeyTemplate, AsAnAuthorityTheHostKeepsAPortOfItsOwn) {
  struct Case {
    std::string_view scheme, host, key;
  };
  const std::vector<Case> cases = {
      {"http", "A.Example", "a.example"},         {"http", "a.example:80", "a.example"},
      {"http", "a.example:", "a.example"},        {"http", "A.Example:8080", "a.example:8080"},
      {"http", "a.example:443", "a.example:443"}, {"https", "a.example:443", "a.example"},
      {"https", "a.example:80", "a.example:80"},  {"http", "a.example.", "a.example."},
      {"http", "192.0.2.1:81", "192.0.2.1:81"},   {"http", "[2001:DB8::1]:80", "[2001:db8::1]"},
      {"http", "[::1]:8080", "[::1]:8080"},       {"https", "[::1]", "[::1]"},
  };
  const KeyTemplate made = *KeyTemplate::parse("{host}{uri}", {}, HostForm::authority);
  std::string scratch;
  for (const Case& one : cases)
    EXPECT_EQ(made.render({.uri = "/", .host = one.host, .scheme = one.scheme}, scratch),
              std::string(one.key) + "/")
        << one.host;
}

TEST(KeyTemplate, FindsTheFirstParameterOfAName) {
  const std::vector<Row> rows = {
      {"/?id=1", "1"},
      {"/?a&id=1&id=2", "1"},
      {"/?idx=1&xid=2&id=3", "3"},
      {"/?id&id=2", "/?id&id=2"},
      {"/?id==", "="},
      {"/?id=a=b", "a=b"},
      {"/?ID=1&id=2", "2"},
      {"/?%69d=1&id=2", "2"},
      {"/?a=id=1", "/?a=id=1"},
      {"/?id=%26&b", "%26"},
      {"/?id=1?2", "1?2"},
  };
  for (const Row& row : rows) EXPECT_EQ(key_of("{query:id}", get(row.text)), row.key) << row.text;
}

TEST(KeyTemplate, JoinsTheLinesOfAHeader) {
  const std::string head =
      get("/", "X-Tenant:  a  \r\nx-other: 1\r\nX-TENANT: b, c\r\nX-Tenant-Id: 9\r\nX-Tenant:\r\n");
  EXPECT_EQ(key_of("{header:x-tenant}", head), "a, b, c, ");
  EXPECT_EQ(key_of("{header:X-Tenant-Id}", head), "9");
  EXPECT_EQ(key_of("{header:X-Tenant-Id}-{header:X-Other}", head), "9-1");
  EXPECT_EQ(key_of("{header:X-H}", get("/", "X-H: \xff\x80\"\t{uri}\r\n")), "\xff\x80\"\t{uri}");
}

TEST(KeyTemplate, ReadsCookiesPairByPair) {
  const std::vector<Row> rows = {
      {"Cookie: sid=1\r\n", "1"},
      {"Cookie: a=b; sid=1; sid=2\r\n", "1"},
      {"Cookie: a=b;sid=1;c\r\n", "1"},
      {"Cookie: xsid=0; sidx=0; SID=0; sid=1\r\n", "1"},
      {"Cookie: a=\"; sid=1\"\r\n", "1\""},
      {"Cookie: sid=\"1 2\"\r\n", "\"1 2\""},
      {"Cookie: sid=a=b%3B\r\n", "a=b%3B"},
      {"cookie: a=b\r\nCOOKIE: sid=1\r\n", "1"},
      {"Cookie: sid\r\n", "/"},
      {"Cookie: ;;; ; sid = 1\r\n", "/"},
      {"Cookie:\r\n", "/"},
      {"X-Cookie: sid=1\r\n", "/"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(key_of("{cookie:sid}", get("/", row.text)), row.key) << row.text;
}

TEST(KeyTemplate, DropsIgnoredParametersInTheirNormalForm) {
  EXPECT_EQ(key_of("{uri:normalized}", get("/?utm_a=1&b=2&caf%c3%a9=3"), {"utm%5F*", "caf%c3%A9"}),
            "/?b=2");
  EXPECT_EQ(key_of("{uri}", get("/?utm_a=1"), {"utm_*"}), "/?utm_a=1");
  for (const std::string pattern : {"", "a*b", "**", "a&b", "a=b"})
    EXPECT_TRUE(KeyTemplate::parse("{uri:normalized}", {pattern}).has_error()) << pattern;
}

TEST(KeyTemplate, KnowsWhenItIsTheTargetAlone) {
  for (const char* text : {"", "{uri}"}) EXPECT_TRUE(KeyTemplate::parse(text)->is_uri()) << text;
  for (const char* text : {"{path}", "{uri}x", "{uri}{uri}", "{uri:normalized}"})
    EXPECT_FALSE(KeyTemplate::parse(text)->is_uri()) << text;
  EXPECT_TRUE(KeyTemplate().is_uri());
}

TEST(KeyTemplate, SaysWhatIsWrongWithAText) {
  const std::vector<Row> rows = {
      {"{", "has a { without a }"},
      {"{uri", "has a { without a }"},
      {"}", "has a } without a {"},
      {"uri}", "has a } without a {"},
      {"{uri}}", "has a } without a {"},
      {"{}", "has an unknown placeholder {}"},
      {"{{uri}}", "has an unknown placeholder {{uri}"},
      {"{url}", "has an unknown placeholder {url}, did you mean \"uri\"?"},
      {"{URI}", "has an unknown placeholder {URI}, did you mean \"uri\"?"},
      {"{header}", "has an unknown placeholder {header}"},
      {"{header:}", "has an unknown placeholder {header:}"},
      {"{header:a b}", "has an unknown placeholder {header:a b}"},
      {"{cookie:a=b}", "has an unknown placeholder {cookie:a=b}"},
      {"{query:a&b}", "has an unknown placeholder {query:a&b}"},
      {"{query:{uri}}", "has an unknown placeholder {query:{uri}"},
      {"{path:normalized}", "has an unknown placeholder {path:normalized}"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(KeyTemplate::parse(row.text).error().message, HasSubstr(row.key)) << row.text;
}

TEST(KeyTemplate, ReadsManyParametersAndCookies) {
  const std::string query = "/?" + std::string(30'000, '&') + "id=7";
  EXPECT_EQ(key_of("{query:id}", get(query)), "7");
  EXPECT_EQ(key_of("{uri:normalized}", get(query)), "/?id=7");
  std::string cookies = "Cookie: ";
  for (int i = 0; i < 100; ++i) cookies += "c" + std::to_string(i) + "=" + std::to_string(i) + "; ";
  EXPECT_EQ(key_of("{cookie:c99}{cookie:c0}", get("/", cookies + "\r\n")), "990");
}

TEST(KeyTemplate, UsesTheMemoryOfItsScratchAgain) {
  const auto made = *KeyTemplate::parse("{host}{uri:normalized}{path:decoded}");
  const std::string uri = "/a/b/c?d=e&b=%41&a&" + std::string(200, 'x');
  std::string scratch;
  (void)made.render({.uri = uri, .host = "h.example"}, scratch);
  const char* const memory = scratch.data();
  for (int i = 0; i < 10; ++i) (void)made.render({.uri = uri, .host = "h.example"}, scratch);
  EXPECT_EQ(scratch.data(), memory);
}

}  // namespace
}  // namespace clockwise::http
