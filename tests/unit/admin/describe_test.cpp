#include "admin/describe.h"

#include <gtest/gtest.h>

#include "admin/gzip.h"
#include "admin/target.h"

namespace clockwise::admin {
namespace {

constexpr std::array<std::uint64_t, 3> kBounds{1'000'000'000, 2'000'000'000, 4'000'000'000};

struct Row {
  const char* name;
  std::array<std::uint64_t, 4> buckets;
  double q;
  double wanted;
};

TEST(Quantile, IsEvenWithinABucket) {
  const Row rows[]{
      {"first bucket starts at 0", {10, 0, 0, 0}, 0.5, 0.5},
      {"second bucket", {0, 10, 0, 0}, 0.5, 1.5},
      {"bound between buckets", {5, 5, 0, 0}, 0.5, 1.0},
      {"gap", {5, 0, 5, 0}, 0.9, 3.6},
      {"beyond every bound", {1, 0, 0, 9}, 0.5, 4.0},
  };
  for (const Row& row : rows)
    EXPECT_DOUBLE_EQ(quantile(kBounds, row.buckets, row.q).as_double(), row.wanted) << row.name;
}

TEST(Quantile, OfNothingIsNull) {
  constexpr std::array<std::uint64_t, 4> kNothing{};
  EXPECT_TRUE(quantile(kBounds, kNothing, 0.5).is_null());
}

TEST(Target, DecodesSegmentsAndParameters) {
  const auto target = parse_target("/a%2Fb//c/?k=%00x&flag&k=1=2#part");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, (std::vector<std::string>{"a/b", "c"}));
  EXPECT_EQ(target->all("k"), (std::vector<std::string>{std::string("\0x", 2), "1=2"}));
  EXPECT_EQ(target->first("flag"), "");
  EXPECT_FALSE(target->first("none"));
}

TEST(Target, MayBeAbsolute) {
  const auto path_of = [](const char* text) { return parse_target(text)->path; };
  EXPECT_EQ(path_of("http://x/healthz"), std::vector<std::string>{"healthz"});
  EXPECT_EQ(path_of("HTTPS://x:1/a?b=c"), std::vector<std::string>{"a"});
  EXPECT_EQ(parse_target("http://x?b=c")->first("b"), "c");
  EXPECT_TRUE(path_of("http://x").empty());
}

TEST(Target, RefusesBrokenEscapes) {
  for (const char* text : {"/%", "/%1", "/%g0", "/%0g", "/?a=%-1", "/?%"})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(AcceptsGzip, FollowsTheField) {
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("deflate, GZIP;q=0.5"));
  EXPECT_TRUE(accepts_gzip("*"));
  EXPECT_FALSE(accepts_gzip(""));
  EXPECT_FALSE(accepts_gzip("identity"));
  EXPECT_FALSE(accepts_gzip("gzip;q=0, *"));
}

}  // namespace
}  // namespace clockwise::admin
