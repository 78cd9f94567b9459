#include "memcached/number.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace clockwise::memcached {
namespace {

TEST(Number, IsReadAsTheServerReadsIt) {
  const struct {
    const char* word;
    bool good;
    std::uint64_t number;
  } rows[] = {
      {"0", true, 0},
      {"007", true, 7},
      {"+7", true, 7},
      {"-0", true, 0},
      {"\t\v\f\r7", true, 7},
      {"7\tx", true, 7},
      {"9223372036854775808", true, 9223372036854775808U},
      {"18446744073709551615", true, 18446744073709551615U},
      {"18446744073709551616", false, 0},
      {"-1", false, 0},
      {"-9223372036854775808", false, 0},
      {"-9223372036854775809", true, 9223372036854775807U},
      {"-18446744073709551615", true, 1},
      {"-18446744073709551616", false, 0},
      {"", false, 0},
      {"+", false, 0},
      {"-", false, 0},
      {"+-7", false, 0},
      {"--7", false, 0},
      {"\t", false, 0},
      {"- 7", false, 0},
      {"7x", false, 0},
      {"x7", false, 0},
      {"0x7", false, 0},
      {"7.0", false, 0},
  };
  for (const auto& row : rows) {
    std::uint64_t number = 0;
    EXPECT_EQ(read_number(row.word, number), row.good) << row.word;
    if (!row.good) continue;
    EXPECT_EQ(number, row.number) << row.word;
    std::uint32_t narrow = 0;
    EXPECT_TRUE(read_number(row.word, narrow)) << row.word;
    EXPECT_EQ(narrow, static_cast<std::uint32_t>(row.number)) << row.word;
  }
}

TEST(Number, OfSignedOnesTheLower32BitsAreKept) {
  const struct {
    const char* word;
    std::int32_t number;
    bool good;
    bool is_length;
  } rows[] = {
      {"-1", -1, true, true},
      {"2147483647", 2147483647, true, true},
      {"-2147483648", -2147483647 - 1, true, true},
      {"2147483648", -2147483647 - 1, true, false},
      {"4294967297", 1, true, false},
      {"-4294967295", 1, true, false},
      {"9223372036854775807", -1, true, false},
      {"-9223372036854775808", 0, true, false},
      {"9223372036854775808", 0, false, false},
      {"-9223372036854775809", 0, false, false},
      {"18446744073709551616", 0, false, false},
  };
  for (const auto& row : rows) {
    std::int32_t number = 0;
    EXPECT_EQ(read_number(row.word, number), row.good) << row.word;
    if (row.good) {
      EXPECT_EQ(number, row.number) << row.word;
    }
    EXPECT_EQ(read_length(row.word, number), row.is_length) << row.word;
    if (row.is_length) {
      EXPECT_EQ(number, row.number) << row.word;
    }
  }
}

RC_GTEST_PROP(NumberLaw, WhatIsPrintedIsRead, (std::uint64_t wide, std::int32_t narrow)) {
  std::uint64_t number = 0;
  RC_ASSERT(read_number(std::to_string(wide), number));
  RC_ASSERT(number == wide);
  std::int32_t length = 0;
  RC_ASSERT(read_length(std::to_string(narrow), length));
  RC_ASSERT(length == narrow);
}

}  // namespace
}  // namespace clockwise::memcached
