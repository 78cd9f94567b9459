// Names, lengths of time, notes, the guess of a format.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "config/values.h"
#include "import/format.h"
#include "import/names.h"
#include "import/notes.h"
#include "import/spans.h"

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;

TEST(ImportNames, AreMadeFromTheText) {
  const std::tuple<const char*, const char*> rows[] = {
      {"cache-1", "cache-1"},
      {"10.0.0.1:8080", "10-0-0-1-8080"},
      {"10.0.0.1", "10-0-0-1"},
      {"cache.example.net:80", "cache-example-net-80"},
      {"cache.example.net", "cache.example.net"},
      {"[fd00::5]:8080", "fd00-5-8080"},
      {"unix:/run/a.sock", "run-a.sock"},
      {"a  b/c", "a-b-c"},
      {"\u043a\u043b\u044e\u0447", "server"},
      {"", "server"},
  };
  for (const auto& [text, name] : rows) {
    EXPECT_EQ(name_from(text, "server"), name) << text;
    EXPECT_TRUE(config::parse_name(name_from(text, "server"))) << text;
    EXPECT_FALSE(config::looks_like_address(name_from(text, "server"))) << text;
  }
  const std::string long_text(100, 'x');
  EXPECT_EQ(name_from(long_text, "server").size(), 64u);
}

TEST(ImportNames, AreUnique) {
  Names names;
  EXPECT_EQ(names.take("a"), "a");
  EXPECT_EQ(names.take("a"), "a-2");
  EXPECT_EQ(names.take("a-2"), "a-2-2");
  EXPECT_EQ(names.take("a"), "a-3");
  const std::string longest(64, 'x');
  EXPECT_EQ(names.take(longest), longest);
  EXPECT_EQ(names.take(longest), std::string(62, 'x') + "-2");
}

TEST(ImportSpans, AreReadInTheUnitsOfThePeers) {
  EXPECT_EQ(parse_span("60", 1s), 60s);
  EXPECT_EQ(parse_span("60", 1ms), 60ms);
  EXPECT_EQ(parse_span("1h30m", 1s), 90min);
  EXPECT_EQ(parse_span("1m30", 1s), 90s);
  EXPECT_EQ(parse_span("500ms", 1s), 500ms);
  EXPECT_EQ(parse_span("1500us", 1s), 1ms);
  EXPECT_EQ(parse_span("0.25s", 1s), 250ms);
  EXPECT_EQ(parse_span("52w", 1s), 52 * 7 * 24h);
  for (const char* text : {"", "s", "-1", "1x", "1 s", "53w", "999999999999999999", "inf", "nan"})
    EXPECT_EQ(parse_span(text, 1s), std::nullopt) << text;
  EXPECT_EQ(span_text(90s), "90s");
  EXPECT_EQ(span_text(250ms), "250ms");
}

TEST(ImportNotes, SayTheSameOnce) {
  Notes notes;
  for (const std::uint32_t line : {9u, 4u, 4u, 12u}) notes.add("b.conf", line, "gzip is off");
  notes.add("b.conf", 2, "odd \x1b[31m\xff text");
  notes.add("a.conf", 1, "gzip is off");
  const std::vector<Note> taken = notes.take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].text(), "b.conf:2: odd ?[31m? text");
  EXPECT_EQ(taken[1].text(), "b.conf:9: gzip is off (also on line 4, 12)");
  EXPECT_EQ(taken[2].text(), "a.conf:1: gzip is off");
  EXPECT_TRUE(notes.take().empty());
}

TEST(ImportFormat, IsGuessed) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"/etc/nginx/nginx.conf", "", "nginx"},
      {"nutcracker.yml", "", "nutcracker"},
      {"/etc/twemproxy.yml", "", "nutcracker"},
      {"haproxy.cfg", "", "haproxy"},
      {"mcrouter.json", "", "mcrouter"},
      {"envoy.yaml", "", "envoy"},
      {"site.conf", "# comment\nupstream pages {\n", "nginx"},
      {"lb.cfg", "global\n  maxconn 1\n", "haproxy"},
      {"lb.yml", "alpha:\n  listen: 1\n  distribution: ketama\n", "nutcracker"},
      {"lb.yaml", "static_resources:\n", "envoy"},
      {"lb.json", "{\"pools\": {}, \"route\": \"PoolRoute|a\"}", "mcrouter"},
      {"notes.txt", "nothing of the kind\n", ""},
      {"notes.txt", "globally\n", ""},
  };
  for (const auto& [path, text, format] : rows) {
    const std::optional<Guess> guess = guess_format(path, text);
    EXPECT_EQ(guess ? to_string(guess->format) : "", format) << path;
  }
  for (const std::string_view name : format_names())
    EXPECT_EQ(to_string(*format_named(name)), name);
  EXPECT_EQ(format_named("apache"), std::nullopt);
}

}  // namespace
}  // namespace clockwise::importer
