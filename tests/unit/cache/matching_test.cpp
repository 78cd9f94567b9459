// Vary, conditions and ranges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cache/conditions.h"
#include "cache/ranges.h"
#include "cache/vary.h"
#include "http/date.h"
#include "support/stores.h"

namespace clockwise::cache {

void showValue(const Selector& one, std::ostream& out) {
  out << one.name << (one.present ? "+" : "-") << one.value;
}

namespace {

using test::Request;
using testing::ElementsAre;

bool fits(const char* vary, const std::string& stored, const std::string& asked) {
  const Request first(stored), second(asked);
  const Lines lines{vary};
  return matches(selectors(lines, first.octets, first.head.fields), second.octets,
                 second.head.fields);
}

struct Row {
  const char* vary;
  const char* stored;
  const char* asked;
  bool fits;
};

// RFC 9111 4.1.
TEST(Vary, Matches) {
  const Row rows[] = {
      {"Foo", "Foo: 1", "Foo: 1", true},
      {"Foo", "Foo: 1", "foo: 1", true},
      {"foo", "Foo: 1", "Foo: 2", false},
      {"Foo", "", "", true},
      {"Foo", "", "Foo: 1", false},
      {"Foo", "Foo:", "", false},
      {"Foo", "Foo: 1", "", false},
      {"Foo", "Foo: 1, 2", "Foo: 1\nFoo: 2", true},
      {"Foo", "Foo: 1,2", "Foo:  1 ,  2 ", true},
      {"Foo", "Foo: 1, 2", "Foo: 2, 1", false},
      {"Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 2\nX: 3", true},
      {"Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 3", false},
      {", ,Foo,", "Foo: a", "Foo: A", false},
      {"Accept-Language", "Accept-Language: en, de", "Accept-Language: de,EN", true},
      {"Accept-Language", "Accept-Language: en, de", "Accept-Language: en, de;q=0.5", false},
      {"Accept-Language", "Accept-Language: en;q=0.50", "Accept-Language: en; q=0.5", true},
      {"Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br;q=0.9, x-gzip", true},
      {"Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", false},
      {"Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip, identity", true},
      {"Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip, identity;q=0", false},
      {"Accept-Encoding", "Accept-Encoding: gzip", "", false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(fits(row.vary, row.stored, row.asked), row.fits)
        << row.vary << " | " << row.stored << " | " << row.asked;
}

rc::Gen<Selector> any_selector() {
  const auto octet = rc::gen::weightedOneOf<char>(
      {{8, rc::gen::element('a', '-', '+', ',', ' ', '\t', '"')},
       {1, rc::gen::suchThat<char>([](char c) { return c != '\0'; })}});
  const auto text = rc::gen::container<std::string>(octet);
  return rc::gen::map(rc::gen::tuple(rc::gen::nonEmpty(text), rc::gen::arbitrary<bool>(), text),
                      [](auto parts) {
                        auto& [name, present, value] = parts;
                        return Selector{name, present, present ? value : std::string()};
                      });
}

RC_GTEST_PROP(VaryLaw, WhatIsPackedIsUnpacked, ()) {
  const auto some = *rc::gen::container<std::vector<Selector>>(any_selector());
  const auto others = *rc::gen::container<std::vector<Selector>>(any_selector());
  RC_ASSERT(unpack(pack(some)) == some);
  RC_ASSERT((pack(some) == pack(others)) == (some == others));
  RC_ASSERT(pack(some).empty() == some.empty());
}

constexpr std::int64_t kNow = 1'000'000'000;
std::string at(std::int64_t seconds) { return std::string(http::Date(seconds).text()); }

// RFC 9110 13.1.2, 13.1.3, 13.2.2.
TEST(Conditions, NotModified) {
  const Validators strong{.etag = "\"abc\"", .last_modified = kNow, .date = kNow + 5};
  const Validators weak{.etag = "W/\"abc\"", .last_modified = {}, .date = {}};
  const Validators none{.etag = "", .last_modified = {}, .date = kNow, .received = kNow + 9};
  const auto match = [](const char* tags, const Validators& v) {
    return not_modified({tags}, {}, v, kNow);
  };
  EXPECT_TRUE(match("\"abc\"", strong));
  EXPECT_TRUE(match("W/\"abc\"", strong));
  EXPECT_TRUE(match("\"abc\"", weak));
  EXPECT_TRUE(match("\"x\", \"abc\"", strong));
  EXPECT_TRUE(match("\"a,b\",\"abc\"", strong));
  EXPECT_TRUE(match("*", strong));
  EXPECT_TRUE(match("abc, \"abc\"", strong));
  EXPECT_FALSE(match("\"x\"", strong));
  EXPECT_FALSE(match("abc", strong));
  EXPECT_FALSE(match("\"ABC\"", strong));
  EXPECT_FALSE(match("\"abc", strong));
  EXPECT_FALSE(match("\"abc\"", none));
  EXPECT_TRUE(not_modified({"\"x\"", "\"abc\""}, {}, strong, kNow)) << "two lines";

  const std::string old = at(kNow - 1), same = at(kNow), later = at(kNow + 1);
  EXPECT_FALSE(not_modified({}, {old}, strong, kNow));
  EXPECT_TRUE(not_modified({}, {same}, strong, kNow));
  EXPECT_TRUE(not_modified({}, {later}, strong, kNow));
  EXPECT_FALSE(not_modified({"\"x\""}, {later}, strong, kNow)) << "the tag decides alone";
  EXPECT_TRUE(not_modified({}, {same}, none, kNow)) << "Date stands for Last-Modified";
  EXPECT_FALSE(not_modified({}, {"yesterday"}, strong, kNow));
  EXPECT_FALSE(not_modified({}, {}, strong, kNow));
}

// RFC 9110 13.1.5.
TEST(Conditions, IfRange) {
  const Validators strong{.etag = "\"abc\"", .last_modified = kNow, .date = kNow + 5};
  const Validators weak{.etag = "W/\"abc\"", .last_modified = kNow, .date = kNow};
  const std::string same = at(kNow), later = at(kNow + 1);
  EXPECT_TRUE(range_applies({}, strong, kNow));
  EXPECT_TRUE(range_applies({"\"abc\""}, strong, kNow));
  EXPECT_FALSE(range_applies({"W/\"abc\""}, weak, kNow));
  EXPECT_FALSE(range_applies({"\"abc\""}, weak, kNow));
  EXPECT_TRUE(range_applies({same}, strong, kNow));
  EXPECT_FALSE(range_applies({same}, weak, kNow)) << "changed in the second it was made";
  EXPECT_FALSE(range_applies({later}, strong, kNow)) << "exact match only";
}

using Parts = std::vector<ByteRange>;

// RFC 9110 14.1.2, 14.2.
TEST(Ranges, OfTenOctets) {
  const auto parts = [](const char* value) {
    const RangeAnswer answer = ranges_of(value, 10);
    return std::holds_alternative<Parts>(answer) ? std::get<Parts>(answer) : Parts{};
  };
  const auto whole = [](const char* value) {
    return std::holds_alternative<WholeBody>(ranges_of(value, 10));
  };
  const auto unsatisfiable = [](const char* value) {
    return std::holds_alternative<Unsatisfiable>(ranges_of(value, 10));
  };
  EXPECT_THAT(parts("bytes=0-4"), ElementsAre(ByteRange{0, 4}));
  EXPECT_THAT(parts("BYTES=3-"), ElementsAre(ByteRange{3, 9}));
  EXPECT_THAT(parts("bytes=-3"), ElementsAre(ByteRange{7, 9}));
  EXPECT_THAT(parts("bytes=-30"), ElementsAre(ByteRange{0, 9}));
  EXPECT_THAT(parts("bytes=5-99999999999999999999"), ElementsAre(ByteRange{5, 9}));
  EXPECT_THAT(parts("bytes=0-1, 5-6"), ElementsAre(ByteRange{0, 1}, ByteRange{5, 6}));
  EXPECT_THAT(parts("bytes=5-6,0-1,2-3"), ElementsAre(ByteRange{0, 3}, ByteRange{5, 6}));
  EXPECT_THAT(parts("bytes=0-4,10-12"), ElementsAre(ByteRange{0, 4}));
  for (const char* value : {"bytes=10-", "bytes=10-20", "bytes=-0", "bytes=10-,11-"})
    EXPECT_TRUE(unsatisfiable(value)) << value;
  for (const char* value : {"", "bytes", "bytes=", "bytes=,", "items=0-4", "bytes=4-3", "bytes=a-b",
                            "bytes=0-4,x", "bytes= 0 - 4", "bytes:0-4", "bytes=--4", "bytes=0x1-4"})
    EXPECT_TRUE(whole(value)) << value;
  std::string many = "bytes=0-0";
  for (int i = 0; i < 40; ++i) many += ",0-0";
  EXPECT_TRUE(whole(many.c_str())) << "an abusive set";
  EXPECT_TRUE(std::holds_alternative<Unsatisfiable>(ranges_of("bytes=0-", 0)));
}

}  // namespace
}  // namespace clockwise::cache
