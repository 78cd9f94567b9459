#include "upstream/json.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace clockwise::upstream {
namespace {

TEST(JsonText, NumbersArePlainAndComeBack) {
  const boost::json::value value = boost::json::parse(
      R"({"a": 0.25, "b": 1e-1, "c": [1, -2, 18446744073709551615], "d": 0.30000000000000004})");
  EXPECT_EQ(
      to_text(value),
      R"({"a": 0.25, "b": 0.1, "c": [1, -2, 18446744073709551615], "d": 0.30000000000000004})");
  EXPECT_EQ(boost::json::parse(to_text(value)), value);
}

TEST(JsonText, SmallNumbersHaveNoExponent) {
  EXPECT_EQ(to_text(boost::json::value(5e-5)), "0.00005");
  EXPECT_EQ(to_text(boost::json::value(-1.25e-17)), "-0.0000000000000000125");
  EXPECT_EQ(to_text(boost::json::value(1e300)), "1e+300");
  EXPECT_EQ(to_text(boost::json::value(5e-324)), "5e-324");
}

TEST(JsonText, StringsAreAlwaysValid) {
  EXPECT_EQ(to_text(boost::json::value("a\"\\\n\x01é")), R"("a\"\\\n\u0001é")");
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_NE(to_text(boost::json::value(bad)).find("\\ufffd"), std::string::npos) << bad;
}

}  // namespace
}  // namespace clockwise::upstream
