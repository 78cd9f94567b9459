#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace clockwise {
namespace {

std::string counting(int first, int step) {
  std::string octets(32, '\0');
  for (std::size_t i = 0; i < octets.size(); ++i)
    octets[i] = static_cast<char>(first + step * static_cast<int>(i));
  return octets;
}

TEST(Crc32c, IsThatOfThePublishedExamples) {
  const struct {
    std::string octets;
    std::uint32_t sum;
  } rows[] = {
      // RFC 3720 B.4, and the check value of the catalogues
      {std::string(32, '\0'), 0x8a9136aa}, {std::string(32, '\xff'), 0x62a8ab43},
      {counting(0, 1), 0x46dd794e},        {counting(31, -1), 0x113fdb5c},
      {"123456789", 0xe3069283},           {"", 0},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(crc32c(row.octets), row.sum) << row.octets;
    EXPECT_EQ(crc32c_by_table(row.octets), row.sum) << row.octets;
  }
}

TEST(Crc32c, IsTheSameOfAnyPieces) {
  std::string octets(100, '\0');
  std::iota(octets.begin(), octets.end(), '\1');
  const std::string_view view = octets;
  for (std::size_t cut = 0; cut <= octets.size(); ++cut) {
    const std::uint32_t whole = crc32c(octets);
    EXPECT_EQ(crc32c(view.substr(cut), crc32c(view.substr(0, cut))), whole) << cut;
    EXPECT_EQ(crc32c_by_table(view.substr(cut), crc32c_by_table(view.substr(0, cut))), whole)
        << cut;
  }
}

}  // namespace
}  // namespace clockwise
