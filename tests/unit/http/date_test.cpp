#include "http/date.h"

#include <gtest/gtest.h>

#include <string>

namespace clockwise::http {
namespace {

constexpr std::int64_t kThen = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT, of RFC 9110 5.6.7

TEST(ParseDate, TheThreeForms) {
  for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994",
                           "sUN, 06 nOV 1994 08:49:37 gmt", "Mon, 06 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(parse_date(text, kThen), kThen) << text;
}

TEST(ParseDate, NothingElse) {
  for (const char* text : {"",
                           "0",
                           "now",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 06 Nov 1994 08:49:37 +0000",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun 06 Nov 1994 08:49:37 GMT",
                           "Sun,  06 Nov 1994 08:49:37 GMT",
                           "Sun, 06  Nov 1994 08:49:37 GMT",
                           "Sun, 06-Nov-1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08.49.37 GMT",
                           "Sun, 06 Nov 1994 8:49:37 GMT",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49 GMT",
                           "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:49:37 GMT",
                           "Sun, 06 Nov 1994 08:60:37 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 06 Xyz 1994 08:49:37 GMT",
                           "Foo, 06 Nov 1994 08:49:37 GMT",
                           "06 Nov 1994 08:49:37 GMT",
                           "Sunday, 06 Nov 1994 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(parse_date(text, kThen), std::nullopt) << text;
}

TEST(ParseDate, FarYears) {
  EXPECT_EQ(parse_date("Fri, 31 Dec 9999 23:59:59 GMT", kThen), 253402300799);
  EXPECT_EQ(parse_date("Tue, 19 Jan 2038 03:14:08 GMT", kThen), 2147483648);
  EXPECT_EQ(parse_date("Thu, 01 Jan 1970 00:00:00 GMT", kThen), 0);
}

// RFC 9110 5.6.7: more than 50 years ahead is of the century before.
TEST(ParseDate, TwoDigitYears) {
  const auto year = [](const char* digits) {
    const auto seconds =
        parse_date(std::string("Friday, 01-Jan-") + digits + " 00:00:00 GMT", kThen);
    return seconds ? std::string(Date(*seconds).text()).substr(12, 4) : "none";
  };
  EXPECT_EQ(year("94"), "1994");
  EXPECT_EQ(year("00"), "1900");
  EXPECT_EQ(year("44"), "1944");
  const std::int64_t in_2026 = 1780000000;
  const auto later = [&](const char* digits) {
    return std::string(
               Date(*parse_date(std::string("Friday, 01-Jan-") + digits + " 00:00:00 GMT", in_2026))
                   .text())
        .substr(12, 4);
  };
  EXPECT_EQ(later("94"), "1994");
  EXPECT_EQ(later("76"), "2076");
  EXPECT_EQ(later("77"), "1977");
  EXPECT_EQ(later("25"), "2025");
}

TEST(ParseDate, ReadsWhatItWrites) {
  for (std::int64_t t = -60'000'000'000; t < 200'000'000'000; t += 7'777'777'777)
    EXPECT_EQ(parse_date(Date(t).text(), kThen), t);
}

}  // namespace
}  // namespace clockwise::http
