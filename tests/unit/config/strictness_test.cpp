// What a YAML library takes kindly and a proxy must not: one test for each row of the strictness
// table in docs/configuration.md that the golden files cannot show (bytes, sizes, time).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "config/load.h"
#include "support/configs.h"

namespace clockwise::config {
namespace {

using test::kSmall;
using test::loaded;
using test::problems_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string small() { return kSmall; }

TEST(Strictness, AnEmptyFileIsNoConfiguration) {
  for (const char* text : {"", "\n\n", "# only\n# comments\n", "---\n", "~\n", "\xef\xbb\xbf"})
    EXPECT_THAT(problems_of(text), ElementsAre(" no configuration: the file is empty")) << text;
}

TEST(Strictness, InvalidUtf8IsRefusedAtItsCharacter) {
  EXPECT_THAT(problems_of(small() + "# ä \xff\n"),
              ElementsAre("7:5: byte 0xff is not valid UTF-8"));
  for (const char* bytes : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_THAT(problems_of(small() + "# " + bytes + "\n"),
                ElementsAre(StartsWith("7:3: byte 0x")));
}

TEST(Strictness, ControlBytesAreRefused) {
  EXPECT_THAT(problems_of(small() + std::string("#\0\n", 3)),
              ElementsAre(HasSubstr("7:2: a NUL byte")));
  EXPECT_THAT(problems_of(small() + "# \x1b[2J\n"), ElementsAre("7:3: control character U+001B"));
  EXPECT_THAT(problems_of(small() + "#\x04\n"), ElementsAre("7:2: control character U+0004"));
  EXPECT_THAT(problems_of(small() + "#\x7f\n"), ElementsAre("7:2: control character U+007F"));
  EXPECT_THAT(problems_of(small() + "#\xc2\x85\n"), ElementsAre("7:2: control character U+0085"));
  EXPECT_THAT(problems_of(small() + "#\ra: 1\n"),
              ElementsAre("7:2: a carriage return without a line feed"));
}

TEST(Strictness, NothingThatAFileHoldsReachesATerminalAsACommand) {
  const LoadResult result = test::load_text("\x1b[2J: \x1b]0;x\n");
  EXPECT_EQ(std::get<Failure>(result).problems[0].text().find('\x1b'), std::string::npos);
}

std::string utf16(std::string_view ascii, bool big_endian) {
  std::string out = big_endian ? "\xfe\xff" : "\xff\xfe";
  for (const char c : ascii) {
    if (big_endian) out += '\0';
    out += c;
    if (!big_endian) out += '\0';
  }
  return out;
}

TEST(Strictness, Utf16ByteOrderMarksAndCrlfAreFine) {
  std::string crlf;
  for (const char c : small()) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const std::string& text :
       {"\xef\xbb\xbf" + small(), utf16(small(), true), utf16(small(), false), crlf})
    EXPECT_EQ(loaded(text).config, loaded(kSmall).config);
}

TEST(Strictness, PositionsDoNotDependOnTheEncoding) {
  const std::string bad = small() + "workers: 0\n";
  for (const std::string& text : {bad, "\xef\xbb\xbf" + bad, utf16(bad, true), utf16(bad, false)})
    EXPECT_THAT(problems_of(text), ElementsAre(StartsWith("7:10: workers:")));
}

TEST(Strictness, ACutUtf16FileIsSeen) {
  std::string text = utf16(small(), false);
  text.pop_back();
  EXPECT_THAT(problems_of(text), ElementsAre(HasSubstr("is not valid UTF-8")));
}

TEST(Strictness, AFileCutInsideAQuoteIsSeen) {
  const std::string text = small() + "admin: {token: \"secret\"}\n";
  const std::size_t quote = text.find('"');
  for (std::size_t size = quote + 1; size <= text.find('"', quote + 1); ++size) {
    EXPECT_THAT(problems_of(text.substr(0, size)), ElementsAre(HasSubstr("never closed"))) << size;
    EXPECT_THAT(problems_of(text.substr(0, size) + "\n"), ElementsAre(HasSubstr("never closed")))
        << size;
  }
}

TEST(Strictness, QuotesInsideQuotesAreNotTakenForTheEnd) {
  const std::string text = small() + "admin: {token: 'it''s'}\naccess_log: {file: \"a \\\" b\"}\n";
  EXPECT_EQ(loaded(text).config.admin.token, "it's");
  EXPECT_EQ(loaded(text).config.access_log->file, "a \" b");
}

TEST(Strictness, NoPrefixOfAFileCrashesOrIsTakenForAnEmptyList) {
  const std::string text = kSmall;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const LoadResult result = test::load_text(text.substr(0, size));
    const auto* accepted = std::get_if<Loaded>(&result);
    if (accepted == nullptr) continue;
    EXPECT_EQ(accepted->config.pools.at(0).servers.size(), 1U) << size;
  }
}

TEST(Strictness, DeepNestingNamesTheCause) {
  for (const std::size_t depth : {100U, 1'000U, 100'000U}) {
    const std::string deep =
        small() + "caches: " + std::string(depth, '[') + std::string(depth, ']');
    EXPECT_THAT(problems_of(deep), ElementsAre(HasSubstr("nested deeper than 64 levels"))) << depth;
  }
}

TEST(Strictness, BracketsWithoutAnEndAreRefusedAtTheirPlace) {
  for (const char bracket : {'[', '{'})
    EXPECT_THAT(problems_of("servers:\n  " + std::string(4U << 20, bracket)),
                ElementsAre(StartsWith("2:66: nested deeper than 64 levels")));
}

TEST(Strictness, ManyAliasesOfAliasesAreRefusedAtOnce) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level <= 9; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int i = 0; i < 10; ++i) text += below + (i < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(problems_of(text), ElementsAre(HasSubstr("more than 4000000 values")));
}

TEST(Strictness, AnAliasIsTheValueItNames) {
  const Loaded result = loaded(
      "listeners: [{name: web, address: &a '127.0.0.1:80', pool: p}]\n"
      "pools: {p: {servers: [{name: s, address: *a}]}}\n");
  EXPECT_EQ(result.config.pools[0].servers[0].address.text, "127.0.0.1:80");
}

TEST(Strictness, ThousandsOfProblemsAreCutShort) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const auto problems = problems_of(text);
  EXPECT_EQ(problems.size(), 1'001U);
  EXPECT_THAT(problems.back(), HasSubstr("more than 1000 problems"));
}

std::string list_of(std::size_t servers, std::string_view separator) {
  std::string text = "{\"servers\": [";
  for (std::size_t i = 0; i < servers; ++i) {
    if (i > 0) text += separator;
    text += "{\"name\": \"cache-" + std::to_string(i) + "\", \"address\": \"cache-" +
            std::to_string(i) + ":80\", \"zone\": \"ä\"}";
  }
  return text + "]}\n";
}

// Ten times the servers may cost ten times the time, not a hundred: one long line included.
TEST(Strictness, ALongListCostsLinearTime) {
  Pool pool;
  pool.ring.scheme.points = 1;
  // The processor's time, the least of three: other programs must not count.
  const auto seconds = [&](std::size_t servers, std::string_view separator) {
    const std::string text = list_of(servers, separator);
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const std::clock_t before = std::clock();
      const auto result = load_servers("list.yaml", text, pool, real_environment());
      EXPECT_EQ(std::get<0>(result).size(), servers);
      least = std::min(least, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
    }
    return least;
  };
  for (const std::string_view separator : {",\n", ", "}) {
    const double small = seconds(1'000, separator);
    const double large = seconds(10'000, separator);
    EXPECT_LT(large, 40 * small + 0.05) << separator;
    RecordProperty("seconds_for_10000_servers", std::to_string(large));
  }
}

}  // namespace
}  // namespace clockwise::config
