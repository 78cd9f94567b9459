// The strict parsers of single values.
#include "config/values.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <optional>

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;

template <class T>
std::optional<T> value_of(const Result<T>& result) {
  return result ? std::optional<T>(*result) : std::nullopt;
}

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

TEST(ParseInteger, TakesPlainDigitsOnly) {
  const auto parse = [](std::string_view text) {
    return value_of(parse_integer(text, 0, kLargest));
  };
  EXPECT_EQ(parse("0"), 0U);
  EXPECT_EQ(parse("17"), 17U);
  EXPECT_EQ(parse("18446744073709551615"), kLargest);
  for (const char* text : {"", "00", "010", "+5", "-5", "0x10", "0o17", "1_0", "5 ", " 5", "1e3",
                           "1.0", "18446744073709551616", "٣", "five"})
    EXPECT_EQ(parse(text), std::nullopt) << text;
}

TEST(ParseInteger, NamesItsBounds) {
  EXPECT_EQ(parse_integer("0", 1, 9).error().message, "is not a whole number from 1 to 9");
  EXPECT_TRUE(parse_integer("9", 1, 9));
  EXPECT_FALSE(parse_integer("10", 1, 9));
}

RC_GTEST_PROP(ParseInteger, ReadsWhatIsPrinted, (std::uint64_t number)) {
  RC_ASSERT(value_of(parse_integer(std::to_string(number), 0, kLargest)) == number);
}

TEST(ParseNumber, TakesFractions) {
  const auto parse = [](std::string_view text) { return value_of(parse_number(text, 0, 10'000)); };
  EXPECT_EQ(parse("0"), 0.0);
  EXPECT_EQ(parse("0.5"), 0.5);
  EXPECT_EQ(parse("2.25"), 2.25);
  EXPECT_EQ(parse("10000"), 10'000.0);
  for (const char* text : {"", ".5", "1.", "00.5", "-1", "+1", "1e3", "nan", ".inf", "inf", "1,5",
                           "10000.1", "1.5.2", "0x1p3"})
    EXPECT_EQ(parse(text), std::nullopt) << text;
}

TEST(ParseDuration, KnowsItsUnits) {
  const auto parse = [](std::string_view text) { return value_of(parse_duration(text, 0ms)); };
  EXPECT_EQ(parse("250ms"), 250ms);
  EXPECT_EQ(parse("5s"), 5'000ms);
  EXPECT_EQ(parse("1m"), 60'000ms);
  EXPECT_EQ(parse("2h"), 7'200'000ms);
  EXPECT_EQ(parse("7d"), 604'800'000ms);
  EXPECT_EQ(parse("0s"), 0ms);
  for (const char* text : {"", "0", "5", "s", "5S", "5 s", "1.5s", "-1s", "05s", "5sec", "5m30s",
                           "999999999999d", "18446744073709551615ms", "367d"})
    EXPECT_EQ(parse(text), std::nullopt) << text;
  EXPECT_EQ(parse_duration("30", 0ms).error().message,
            "has no unit; a duration is written like 250ms, 5s, 1m, 2h, 7d");
  EXPECT_EQ(parse_duration("0s", 1ms).error().message, "is shorter than 1ms");
}

TEST(ParseSize, UnitsArePowersOf1024) {
  const auto parse = [](std::string_view text) { return value_of(parse_size(text, 0, kLargest)); };
  EXPECT_EQ(parse("0"), 0U);
  EXPECT_EQ(parse("4096"), 4096U);
  EXPECT_EQ(parse("64k"), 65'536U);
  EXPECT_EQ(parse("64KiB"), 65'536U);
  EXPECT_EQ(parse("2m"), 2'097'152U);
  EXPECT_EQ(parse("512MiB"), 536'870'912U);
  EXPECT_EQ(parse("1g"), 1'073'741'824U);
  EXPECT_EQ(parse("1GiB"), 1'073'741'824U);
  for (const char* text :
       {"", "k", "64K", "64kb", "64KB", "64 k", "1.5g", "-1", "064", "1t", "18446744073709551615k"})
    EXPECT_EQ(parse(text), std::nullopt) << text;
}

TEST(ParseShare, IsAPercentageOrAFraction) {
  const auto parse = [](std::string_view text) { return value_of(parse_share(text)); };
  EXPECT_EQ(parse("60%"), 0.6);
  EXPECT_EQ(parse("0.6"), 0.6);
  EXPECT_EQ(parse("12.5%"), 0.125);
  EXPECT_EQ(parse("0%"), 0.0);
  EXPECT_EQ(parse("0"), 0.0);
  EXPECT_EQ(parse("1"), 1.0);
  EXPECT_EQ(parse("100%"), 1.0);
  for (const char* text :
       {"", "%", "60", "101%", "1.1", "-5%", "5 %", "060%", "60%%", "60pct", "2"})
    EXPECT_EQ(parse(text), std::nullopt) << text;
  EXPECT_EQ(parse_share("60").error().message,
            "is not a share: write 60%, or a number from 0 to 1");
}

TEST(ParseAddress, TakesNamesNumbersAndSockets) {
  struct Row {
    const char* text;
    Address expected;
  };
  const std::vector<Row> rows{
      {"10.0.0.11:8080", {"10.0.0.11:8080", "10.0.0.11", 8080, ""}},
      {"cache-1.example.com:80", {"cache-1.example.com:80", "cache-1.example.com", 80, ""}},
      {"cache_1:80", {"cache_1:80", "cache_1", 80, ""}},
      {"localhost.:1", {"localhost.:1", "localhost.", 1, ""}},
      {"[2001:db8::1]:443", {"[2001:db8::1]:443", "2001:db8::1", 443, ""}},
      {"[fe80::1%eth0]:80", {"[fe80::1%eth0]:80", "fe80::1%eth0", 80, ""}},
      {"unix:/run/a.sock", {"unix:/run/a.sock", "", 0, "/run/a.sock"}},
      {"h:65535", {"h:65535", "h", 65535, ""}},
  };
  for (const Row& row : rows) {
    const Result<Address> address = parse_address(row.text, PortRule::connecting);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(*address, row.expected) << row.text;
  }
}

TEST(ParseAddress, RefusesTheRest) {
  for (const std::string& text : {std::string(""),
                                  std::string(":"),
                                  std::string("h"),
                                  std::string("h:"),
                                  std::string(":80"),
                                  std::string("h:0"),
                                  std::string("h:65536"),
                                  std::string("h:080"),
                                  std::string("h:+80"),
                                  std::string("h:80 "),
                                  std::string(" h:80"),
                                  std::string("h:8O"),
                                  std::string("10.0.0.256:80"),
                                  std::string("10.0.0:80"),
                                  std::string("1:80"),
                                  std::string("-h:80"),
                                  std::string("h-:80"),
                                  std::string("h..x:80"),
                                  std::string("::1:80"),
                                  std::string("[::1]"),
                                  std::string("[::1]80"),
                                  std::string("[10.0.0.1]:80"),
                                  std::string("[h]:80"),
                                  std::string("[::g]:80"),
                                  std::string("[]:80"),
                                  std::string("[::1%]:80"),
                                  std::string("http://h:80"),
                                  std::string("h:80/"),
                                  std::string("u@h:80"),
                                  std::string("*:80"),
                                  std::string("unix:"),
                                  std::string("unix:a.sock"),
                                  "unix:/" + std::string(107, 'x'),
                                  std::string(254, 'h') + ":80",
                                  std::string(64, 'h') + ":80"})
    EXPECT_FALSE(parse_address(text, PortRule::connecting)) << text;
}

TEST(ParseAddress, OnlyAListenerMayTakeAnyPort) {
  EXPECT_TRUE(parse_address("127.0.0.1:0", PortRule::listening));
  EXPECT_FALSE(parse_address("127.0.0.1:0", PortRule::connecting));
}

TEST(ParseNetwork, HasAPrefixThatCoversItsBits) {
  for (const char* text :
       {"10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32", "::/0", "::1/128", "2001:db8::/32"}) {
    ASSERT_TRUE(parse_network(text)) << text;
    EXPECT_EQ(parse_network(text)->text, text);
  }
  EXPECT_EQ(parse_network("192.0.2.1")->text, "192.0.2.1/32");
  EXPECT_EQ(parse_network("::1")->text, "::1/128");
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.1/8",
                           "::1/129", "10/8", "localhost", "2001:db8::1/32"})
    EXPECT_FALSE(parse_network(text)) << text;
}

TEST(ParseName, IsShortAndPlain) {
  EXPECT_TRUE(parse_name("cache-1.dc_2:80"));
  EXPECT_TRUE(parse_name(std::string(64, 'x')));
  for (const std::string& text : {std::string(), std::string("a b"), std::string("ä"),
                                  std::string("a/b"), std::string("a\n"), std::string(65, 'x')})
    EXPECT_FALSE(parse_name(text)) << text;
}

TEST(LooksLikeAddress, TellsNamesFromAddresses) {
  for (const char* text : {"10.0.0.1", "10.0.0.1:80", "host:8080", "::1"})
    EXPECT_TRUE(looks_like_address(text)) << text;
  for (const char* text : {"cache-1", "10", "rack:a", "a:", "1.2.3"})
    EXPECT_FALSE(looks_like_address(text)) << text;
}

}  // namespace
}  // namespace clockwise::config
