#include "http/octets.h"

#include <gtest/gtest.h>

#include <string>

namespace clockwise::http {
namespace {

TEST(Octets, LowerCaseIsThatOfEachOctet) {
  for (std::size_t size = 0; size < 20; ++size) {
    for (unsigned first = 0; first < 256; ++first) {
      std::string text, wanted;
      for (std::size_t i = 0; i < size; ++i) {
        text += static_cast<char>(first + i * 13);
        wanted += lower(text.back());
      }
      std::string out(size + 1, '!');
      EXPECT_EQ(copy_lower(text, out.data()), out.data() + size);
      EXPECT_EQ(out, wanted + '!') << first;
    }
  }
}

}  // namespace
}  // namespace clockwise::http
