#include "memcached/key.h"

#include <gtest/gtest.h>

#include <string>

#include "memcached/command.h"

namespace clockwise::memcached {
namespace {

using namespace std::string_literals;

TEST(Key, IsUpTo250OctetsAboveABlank) {
  EXPECT_TRUE(is_key("a"));
  EXPECT_TRUE(is_key("\x7f\xff!"));
  EXPECT_TRUE(is_key(std::string(250, 'k')));
  for (const std::string& key :
       {""s, std::string(251, 'k'), " "s, "a b"s, "a\r"s, "\n"s, "\0"s, "a\tb"s, "\x1f"s}) {
    EXPECT_FALSE(is_key(key)) << key;
  }
}

TEST(Key, EscapesWhatCouldEndIt) {
  const struct {
    std::string text;
    std::string key;
  } rows[] = {
      {"/a b?", "/a%20b?"},
      {"/caf\xc3\xa9?", "/caf\xc3\xa9?"},
      {"/a?q=%20", "/a?q=%2520"},
      {"\0\r\n\t\x1f\x7f\xff"s, "%00%0D%0A%09%1F\x7f\xff"},
      {"", ""},
  };
  for (const auto& row : rows) {
    std::string key = "before";
    append_escaped(row.text, key);
    EXPECT_EQ(key, "before" + row.key);
  }
}

// The digests are those of Python's hashlib.
TEST(Key, TheLockOfAnItemIsAKeyInTheSameNamespace) {
  EXPECT_EQ(lock_key("/a?", ""), "clockwise-fetch:15a8dcf27306c6198984e4cdb9d89225");
  EXPECT_EQ(lock_key("ns:/a?", "ns:"), "ns:clockwise-fetch:d8126f6b12664bac87195eedbc34fbe2");
  EXPECT_EQ(lock_key("/a?", "ns:"), lock_key("/a?", ""));
  const std::string space(200, 'n');
  const std::string longest = lock_key(space + std::string(50, 'k'), space);
  EXPECT_TRUE(longest.starts_with(space));
  EXPECT_TRUE(is_key(longest));
}

// The digests are those of Python's hashlib.
TEST(Key, LongOnesEndInADigest) {
  std::string ascending;
  for (int octet = 33; octet < 256; ++octet) ascending += static_cast<char>(octet);
  const struct {
    std::string key;
    const char* digest;
  } rows[] = {
      {std::string(251, 'k'), "3b8059c637939a483bdc7beef09f11b5"},
      {std::string(100'000, 'a'), "6d1cf22d7cc09b085dfc25ee1a1f3ae0"},
      {ascending + ascending, "5c1a37daff573a0866ce658548d87042"},
      {"/"s + std::string(249, 'x') + "?", "8640055e52b2501b74c9198857178f5d"},
  };
  for (const auto& row : rows) {
    std::string key = row.key;
    EXPECT_TRUE(digest_if_long(key));
    EXPECT_EQ(key, row.key.substr(0, 217) + "~" + row.digest);
    EXPECT_EQ(key.size(), kMaxKey);
  }
}

TEST(Key, ShortOnesStay) {
  for (const std::string& text : {""s, "k"s, std::string(250, 'k')}) {
    std::string key = text;
    EXPECT_FALSE(digest_if_long(key));
    EXPECT_EQ(key, text);
  }
}

TEST(Exptime, IsATimeOfDayAboveThirtyDays) {
  constexpr std::int64_t kNow = 1'800'000'000;
  EXPECT_EQ(exptime_of(0, kNow), 0);
  EXPECT_EQ(exptime_of(1, kNow), 1);
  EXPECT_EQ(exptime_of(2'592'000, kNow), 2'592'000);
  EXPECT_EQ(exptime_of(2'592'001, kNow), 1'802'592'001);
  EXPECT_EQ(exptime_of(347'483'647, kNow), 2'147'483'647);
}

// A server keeps 32 bits of it: more would be a time long past, or none.
TEST(Exptime, IsNoMoreThanAServerReads) {
  EXPECT_EQ(exptime_of(347'483'648, 1'800'000'000), 2'147'483'647);
  EXPECT_EQ(exptime_of(INT64_MAX, 1'800'000'000), 2'147'483'647);
  EXPECT_EQ(exptime_of(INT64_MAX, INT64_MAX), 2'147'483'647);
}

TEST(Exptime, OfAStandInIsNoMoreThanThat) {
  using namespace std::chrono_literals;
  EXPECT_EQ(exptime_of_stand_in(5, 10s), 5);
  EXPECT_EQ(exptime_of_stand_in(11, 10s), 10);
  EXPECT_EQ(exptime_of_stand_in(0, 10s), 10) << "for ever";
  EXPECT_EQ(exptime_of_stand_in(1'800'000'000, 10s), 10) << "a time of the day";
  EXPECT_EQ(exptime_of_stand_in(-1, 10s), -1) << "at once";
  EXPECT_EQ(exptime_of_stand_in(0, 10ms), 1) << "0 would be for ever";
}

}  // namespace
}  // namespace clockwise::memcached
