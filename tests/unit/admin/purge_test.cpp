#include "admin/purge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/admin/world.h"

namespace clockwise::admin {
namespace {

using cache::PurgeRule;
using cache::PurgeScope;
using testing::HasSubstr;
using testing_world::cache_of;

constexpr std::string_view kKey = "{scheme}://{host}{uri}";

PurgeRule rule_of(std::string_view body, std::string_view key = kKey) {
  const auto read = read_purge(body, *cache_of(std::string(key)));
  const auto* bad = std::get_if<BadPurge>(&read);
  EXPECT_FALSE(bad) << body << ": " << bad->message;
  return bad != nullptr ? PurgeRule{} : std::get<PurgeRule>(read);
}

BadPurge refusal_of(std::string_view body, std::string_view key = kKey) {
  const auto read = read_purge(body, *cache_of(std::string(key)));
  EXPECT_TRUE(std::holds_alternative<BadPurge>(read)) << body;
  const auto* bad = std::get_if<BadPurge>(&read);
  return bad == nullptr ? BadPurge{} : *bad;
}

TEST(Purge, ReadsEachScope) {
  const struct {
    std::string body;
    PurgeScope scope;
    std::string text;
    bool soft = false;
  } rows[]{
      {R"({"url": "http://h/a?b"})", PurgeScope::url, "http://h/a?b"},
      {R"({"prefix": "http://h/a"})", PurgeScope::prefix, "http://h/a"},
      {R"({"host": "h.example:8080"})", PurgeScope::host, "h.example:8080"},
      {R"({"tag": "news"})", PurgeScope::tag, "news"},
      {R"({"all": true})", PurgeScope::all, ""},
      {R"({"soft": true, "all": true})", PurgeScope::all, "", true},
      {R"({"tag": "news", "soft": false})", PurgeScope::tag, "news"},
  };
  for (const auto& row : rows) {
    const PurgeRule rule = rule_of(row.body);
    EXPECT_EQ(rule.scope, row.scope) << row.body;
    EXPECT_EQ(rule.text, row.text) << row.body;
    EXPECT_EQ(rule.soft, row.soft) << row.body;
  }
}

TEST(Purge, AUrlBecomesTheKeyOfARequestForIt) {
  const struct {
    std::string url, key, text;
  } rows[]{
      {"http://h/a", "{scheme}://{host}{uri}", "http://h/a"},
      {"HTTP://H.Example:80/A?b", "{scheme}://{host}{uri}", "http://h.example/A?b"},
      {"https://h:443/", "{scheme}://{host}{uri}", "https://h/"},
      {"https://h:80/", "{scheme}://{host}{uri}", "https://h:80/"},
      {"http://[::1]:8080/a", "{scheme}://{host}{uri}", "http://[::1]:8080/a"},
      {"http://h", "{scheme}://{host}{uri}", "http://h/"},
      {"http://h?b", "{scheme}://{host}{uri}", "http://h/?b"},
      {"http://h/a#b", "{scheme}://{host}{uri}", "http://h/a"},
      {"http://h/a?u=http://i/", "{scheme}://{host}{uri}", "http://h/a?u=http://i/"},
      {"http://h/a?b", "{path}", "/a"},
      {"http://h/a?y=1&x=2", "{host}{uri:normalized}", "h/a?x=2&y=1"},
      {"http://h/a", "{method} {uri}", "GET /a"},
      {"http://H/a", "{header:Host}{uri}", "H/a"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(rule_of(R"({"url": ")" + row.url + R"("})", row.key).text, row.text) << row.url;
}

TEST(Purge, SaysWhatIsWrong) {
  const struct {
    std::string body, message;
    std::optional<PurgeScope> scope = {};
  } rows[]{
      {"", "the body is not JSON (incomplete JSON, at line 1, column 1); wanted is an object"},
      {R"({"all": true} x)", "goes on behind its value, at line 1, column 15"},
      {"[]", "nothing to purge; wanted is an object such as"},
      {"{}", "nothing to purge; wanted is an object such as"},
      {R"({"soft": true})", "nothing to purge"},
      {R"({"what": "x"})", R"(unknown field "what"; there are: url, prefix, host, tag, all, soft)"},
      {R"({"all": true, "what": 1})", R"(unknown field "what")"},
      {R"({"url": "http://h/", "all": true})", "one of url, prefix, host, tag, all"},
      {R"({"tag": "a", "tag": "b"})", "tag: stands twice, again at line 1, column 14"},
      {R"({"all": false})", "all: false is not true", PurgeScope::all},
      {R"({"all": 1})", "all: 1 is not true", PurgeScope::all},
      {R"({"all": true, "soft": "yes"})", R"(soft: "yes" is neither true nor false)",
       PurgeScope::all},
      {R"({"url": 1})", "url: 1 is no text", PurgeScope::url},
      {R"({"url": ""})", "url: is empty", PurgeScope::url},
      {R"({"prefix": ""})", "prefix: is empty", PurgeScope::prefix},
      {R"({"host": null})", "host: null is no text", PurgeScope::host},
      {R"({"tag": ["a"]})", "tag: a list is no text", PurgeScope::tag},
      {R"({"tag": "a b"})", R"(tag: "a b" is no single tag)", PurgeScope::tag},
      {R"({"tag": "a,b"})", R"(tag: "a,b" is no single tag)", PurgeScope::tag},
      {R"({"host": "http://h"})", R"(host: "http://h" is no host such as)", PurgeScope::host},
  };
  for (const auto& row : rows) {
    const BadPurge bad = refusal_of(row.body);
    EXPECT_THAT(bad.message, HasSubstr(row.message)) << row.body;
    EXPECT_EQ(bad.scope, row.scope) << row.body;
  }
}

TEST(Purge, AUrlHasASchemeAndAHost) {
  for (const std::string url : {"/a", "h/a", "//h/a", "http:/h/a", "http:///a", "http://:80/",
                                "http://u@h/", "ftp://h/a", "http://h/a b", "http://#h/"})
    EXPECT_THAT(refusal_of(R"({"url": ")" + url + R"("})").message,
                HasSubstr("is no URL such as http://host/path"))
        << url;
}

TEST(Purge, WhatCanNameNothingInThisCacheIsRefused) {
  for (const std::string placeholder : {"{cookie:lang}", "{header:X-Device}", "{client_ip}"}) {
    const std::string key = "{host}{uri}" + placeholder;
    EXPECT_THAT(refusal_of(R"({"url": "http://h/"})", key).message,
                HasSubstr("the key of cache store has " + placeholder));
    EXPECT_EQ(rule_of(R"({"prefix": "h/"})", key).text, "h/");
  }
  EXPECT_THAT(refusal_of(R"({"host": "h"})", "{host}{uri}").message,
              HasSubstr("the keys of cache store are not of the form scheme://host/"));
  EXPECT_EQ(rule_of(R"({"host": "h"})", "http://{host}/{path}").text, "h");
}

TEST(Purge, AMessageIsShortWhateverWasSent) {
  const std::string much(1'000'000, 'x');
  for (const std::string& body :
       {R"({"url":")" + much + R"("})", R"({"url":"http://h/)" + much + R"("})",
        R"({"host":")" + much + R"("})", R"({"soft":")" + much + R"(", "all": true})",
        R"({")" + much + R"(":1})", R"({")" + much + R"(":1,")" + much + R"(":1})"})
    EXPECT_LT(refusal_of(body).message.size(), 300U) << body.substr(0, 20);
}

}  // namespace
}  // namespace clockwise::admin
