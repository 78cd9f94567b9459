#include "cache/directives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace clockwise::cache {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string_view>;

Directives control(Texts lines) { return parse_cache_control(lines); }

struct MaxAge {
  const char* line;
  std::optional<Seconds> expected;
};

// RFC 9111 1.2.2 and 5.2: what cannot be read is stale, never a default.
TEST(Directives, MaxAge) {
  const MaxAge rows[] = {
      {"max-age=3600", 3600},
      {"MaX-AgE=3600", 3600},
      {"max-age=003600", 3600},
      {"max-age=\"3600\"", 3600},
      {"max-age='3600'", 0},
      {"max-age=2147483648", kForever},
      {"max-age=99999999999999999999999", kForever},
      {"max-age=3600.0", 0},
      {"max-age=a3600", 0},
      {"max-age=3600a", 0},
      {"max-age=-3600", 0},
      {"max-age=", 0},
      {"max-age", 0},
      {"max-age =3600", 0},
      {"max-age= 3600", 0},
      {"max-age=3600, max-age=1800", 1800},
      {"max-age=1800,max-age=3600", 1800},
      {"max-age=60 61", 0},
      {"ext=\"max-age=3600\"", std::nullopt},
      {"ext=\"a\\\"max-age=3600\", public", std::nullopt},
      {"ext=\", max-age=3600\"", std::nullopt},
      {"ext=\"unclosed, max-age=3600", std::nullopt},
      {",, max-age=5 ,", 5},
      {"max-agex=3600", std::nullopt},
      {"", std::nullopt},
  };
  for (const MaxAge& row : rows) EXPECT_EQ(control({row.line}).max_age, row.expected) << row.line;
}

TEST(Directives, LinesAreOneList) {
  const Directives both = control({"max-age=10, s-maxage=20", "public", "s-maxage=5"});
  EXPECT_EQ(both.max_age, 10);
  EXPECT_EQ(both.s_maxage, 5);
  EXPECT_TRUE(both.is_public);
}

TEST(Directives, RestrictionsHoldInAnyShapeAndPermissionsOnlyWellFormed) {
  EXPECT_TRUE(control({"No-Store"}).no_store);
  EXPECT_TRUE(control({"no-store=1"}).no_store);
  EXPECT_TRUE(control({"no-store =x y"}).no_store);
  EXPECT_TRUE(control({"must-revalidate;q"}).must_revalidate);
  EXPECT_TRUE(control({"public"}).is_public);
  EXPECT_FALSE(control({"public x"}).is_public);
  EXPECT_FALSE(control({"immutable =1"}).immutable);
  EXPECT_FALSE(control({"x-no-store"}).no_store);
}

// 5.2.2.4 and 5.2.2.7.
TEST(Directives, FieldNames) {
  const Directives some = control({"private=\"Set-Cookie, X-A\", no-cache=\"X-B\""});
  EXPECT_FALSE(some.is_private);
  EXPECT_FALSE(some.no_cache);
  EXPECT_THAT(some.private_fields, ElementsAre("set-cookie", "x-a"));
  EXPECT_THAT(some.no_cache_fields, ElementsAre("x-b"));
  EXPECT_TRUE(control({"private"}).is_private);
  EXPECT_TRUE(control({"private=\"\""}).is_private);
  EXPECT_TRUE(control({"private=\"a b\""}).is_private);
  EXPECT_TRUE(control({"private=\"a\", private"}).is_private);
  EXPECT_TRUE(control({"no-cache=\"unclosed"}).no_cache);
}

TEST(Directives, MaxStaleMayStandAlone) {
  EXPECT_EQ(control({"max-stale"}).max_stale, kForever);
  EXPECT_EQ(control({"max-stale=7"}).max_stale, 7);
}

// RFC 9213 2.1: any fault, and the whole field is ignored.
TEST(Directives, TargetedFieldsAreStructured) {
  const auto of = [](Texts lines) { return parse_targeted(lines); };
  EXPECT_EQ(of({"max-age=600"})->max_age, 600);
  EXPECT_EQ(of({"max-age=600", "no-store"})->no_store, true);
  EXPECT_EQ(of({"max-age=600;x=1, ext=(a b);q=?1, must-revalidate"})->max_age, 600);
  EXPECT_EQ(of({"max-age=1, max-age=2"})->max_age, 2);
  EXPECT_EQ(of({"no-store=?0"})->no_store, false);
  EXPECT_EQ(of({"max-age=-5"})->max_age, 0);
  EXPECT_EQ(of({"private=\"x\""})->is_private, true);
  for (const char* bad :
       {"", " ", "max-age=\"600\"", "max-age=600.0", "max-age=a", "Max-Age=600", "max-age =600",
        "max-age= 600", "max-age=600,", "max-age=600 no-store", "no-store=1", "max-age",
        "max-age=600; , x", "max-age=1234567890123456", "x=\"unclosed", "x=:a", "x=?2", "&"})
    EXPECT_FALSE(of({bad})) << bad;
  EXPECT_FALSE(of({}));
}

}  // namespace
}  // namespace clockwise::cache
