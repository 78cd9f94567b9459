#include "cache/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "base/crc32c.h"
#include "cache/vary.h"

namespace clockwise::cache {
namespace {

using testing::AllOf;
using testing::Each;
using testing::MatchesRegex;

constexpr std::string_view kKey = "http://example.com/a";

Entry answer(std::string_view body) {
  Entry entry;
  entry.status = 404;
  entry.terms = {.received_ms = 1'700'000'000'123,
                 .initial_age = 5,
                 .lifetime = 60,
                 .stale_while_revalidate = 7,
                 .stale_if_error = 300,
                 .never_stale = true,
                 .has_validator = true};
  entry.asked_ms = 1'700'000'000'100;
  entry.length = body.size();
  entry.key = kKey;
  entry.head = "Content-Type: text/plain\r\nETag: \"1\"\r\n";
  entry.tags = "news sport";
  entry.body = body;
  return entry;
}

// As a writer sends it.
std::string value_of(const Entry& entry) {
  std::string value = front_of(entry);
  value += entry.body;
  return value + packed_sum(crc32c(value));
}

std::string summed(std::string value) { return value + packed_sum(crc32c(value)); }

// With another octet in one place, and a sum that fits.
std::string changed(std::string value, std::size_t at, char octet) {
  value.resize(value.size() - kSumSize);
  value[at] = octet;
  return summed(std::move(value));
}

void expect_same(const Entry& read, const Entry& written) {
  EXPECT_EQ(read.kind, written.kind);
  EXPECT_EQ(read.status, written.status);
  EXPECT_EQ(read.terms, written.terms);
  EXPECT_EQ(read.asked_ms, written.asked_ms);
  EXPECT_EQ(read.generation, written.generation);
  EXPECT_EQ(read.length, written.length);
  EXPECT_EQ(read.part_size, written.part_size);
  EXPECT_EQ(read.key, written.key);
  EXPECT_EQ(read.head, written.head);
  EXPECT_EQ(read.selectors, written.selectors);
  EXPECT_EQ(read.tags, written.tags);
  EXPECT_EQ(read.body, written.body);
}

TEST(Entry, AnAnswerIsReadAsItWasWritten) {
  const Entry written = answer("hello");
  const std::string value = value_of(written);
  const auto read = read_entry(value);
  ASSERT_TRUE(read);
  expect_same(*read, written);
}

TEST(Entry, EachFlagOfTheTermsIsItsOwn) {
  for (int i = 0; i < 5; ++i) {
    Entry written = answer("");
    written.terms = {.received_ms = 1};
    written.terms.validate_always = i == 0;
    written.terms.never_stale = i == 1;
    written.terms.immutable = i == 2;
    written.terms.has_validator = i == 3;
    written.terms.for_authorized = i == 4;
    const std::string value = value_of(written);
    const auto read = read_entry(value);
    ASSERT_TRUE(read) << i;
    EXPECT_EQ(read->terms, written.terms) << i;
  }
}

TEST(Entry, AManifestHasAsManyPartsAsItsBodyTakes) {
  Entry written = answer("");
  written.kind = Entry::Kind::manifest;
  written.generation = 0x0123456789abcdef;
  written.part_size = 100;
  const struct {
    std::uint64_t length, parts;
  } rows[] = {{1, 1}, {100, 1}, {101, 2}, {6400, 64}};
  for (const auto& row : rows) {
    written.length = row.length;
    const std::string value = value_of(written);
    const auto read = read_entry(value);
    ASSERT_TRUE(read) << row.length;
    expect_same(*read, written);
    EXPECT_EQ(read->parts(), row.parts);
  }
  written.length = 6401;
  EXPECT_FALSE(read_entry(value_of(written))) << "more parts than there may be";
  written.length = 0;
  EXPECT_FALSE(read_entry(value_of(written)));
}

TEST(Entry, AVaryTellsTheFields) {
  Entry written;
  written.kind = Entry::Kind::vary;
  written.generation = 17;
  written.key = kKey;
  written.selectors = "accept-encoding,x-user";
  const std::string value = value_of(written);
  const auto read = read_entry(value);
  ASSERT_TRUE(read);
  expect_same(*read, written);
}

TEST(Entry, WhatIsNotExactlyOneIsNone) {
  const std::string good = value_of(answer("hello"));
  ASSERT_TRUE(read_entry(good));
  EXPECT_FALSE(read_entry(""));
  EXPECT_FALSE(read_entry("abc"));
  EXPECT_FALSE(read_entry("HTTP/1.1 200 OK\r\n\r\nhello")) << "of another program";
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(read_entry(good.substr(0, size))) << "cut after " << size;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    EXPECT_FALSE(read_entry(bad)) << "changed at " << at;
  }
  EXPECT_FALSE(read_entry(good + "x"));
  EXPECT_FALSE(read_entry(changed(good, 3, '\2'))) << "of a later version";
  EXPECT_FALSE(read_entry(changed(good, 4, '\3'))) << "of a kind that is not known";
  EXPECT_FALSE(read_entry(changed(good, 5, '\x40'))) << "with a flag that is not known";
  EXPECT_FALSE(read_entry(summed(good.substr(0, good.size() - 5)))) << "with less body";
  EXPECT_FALSE(read_entry(summed(good.substr(0, good.size() - 4) + "x"))) << "with more body";
  EXPECT_FALSE(read_entry(summed(good.substr(0, 40)))) << "without its texts";
}

TEST(Entry, WhatNoProxyWritesIsNone) {
  const auto is_read = [](auto change) {
    Entry entry = answer("hello");
    change(entry);
    return read_entry(value_of(entry)).has_value();
  };
  EXPECT_TRUE(is_read([](Entry&) {}));
  EXPECT_FALSE(is_read([](Entry& e) { e.status = 0; })) << "a marker of the store";
  EXPECT_FALSE(is_read([](Entry& e) { e.status = 600; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.terms.received_ms = -1; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.asked_ms = INT64_MAX; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.terms.lifetime = UINT32_MAX; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.part_size = 5; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.length = 4; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.head = "A: b"; })) << "a line without its end";
  EXPECT_FALSE(is_read([](Entry& e) { e.head = "A: b\r\n\r\nHTTP/1.1 200 OK\r\n"; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.head = "\r\n"; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.selectors = "accept"; }));
  EXPECT_FALSE(is_read([](Entry& e) { e.selectors = std::string_view("a\0b\0", 4); }));
  EXPECT_FALSE(is_read([](Entry& e) { e.selectors = std::string_view("a\0\0", 3); }));
  EXPECT_TRUE(is_read([](Entry& e) { e.selectors = std::string_view("a\0+b\0", 5); }));
}

TEST(Entry, PartsAreReadByTheirPlace) {
  const std::string value = summed(part_front(77, 3) + "octets");
  EXPECT_EQ(value.size(), 6 + kPartMore);
  EXPECT_EQ(read_part(value, 77, 3), "octets");
  EXPECT_FALSE(read_part(value, 77, 4));
  EXPECT_FALSE(read_part(value, 78, 3)) << "of an older answer";
  EXPECT_FALSE(read_part(value.substr(0, value.size() - 1), 77, 3));
  EXPECT_FALSE(read_part(summed(value), 78, 3));
  EXPECT_FALSE(read_part("", 77, 3));
  EXPECT_FALSE(read_entry(value));
}

TEST(EntryKeys, AreShortAndTellWhatTheyAreOf) {
  const std::string key = entry_key("shop", kKey);
  EXPECT_THAT(key, MatchesRegex("shop:[0-9a-f]{32}"));
  // Of SHA-256, so that another program can find an entry.
  EXPECT_EQ(entry_key("s", "abc"), "s:ba7816bf8f01cfea414140de5dae2223");
  const std::string variant = variant_key(key, 5, std::string_view("a\0+b\0", 5));
  EXPECT_THAT(variant, MatchesRegex("shop:[0-9a-f]{32}:[0-9a-f]{16}"));
  EXPECT_NE(variant, variant_key(key, 6, std::string_view("a\0+b\0", 5)));
  EXPECT_NE(variant, variant_key(key, 5, std::string_view("a\0+c\0", 5)));
  EXPECT_EQ(part_key(key, 0x1122, 12), key + ":2211000000000000:12");
}

TEST(TimeLeft, IsTheFreshAndTheStaleTimeAndThatOfValidation) {
  constexpr std::int64_t kNow = 5'000'000;
  const struct {
    Terms terms;
    Seconds left;
  } rows[] = {
      {{.received_ms = kNow, .lifetime = 60}, 60},
      {{.received_ms = kNow - 20'000, .initial_age = 10, .lifetime = 60}, 30},
      {{.received_ms = kNow - 70'000, .lifetime = 60}, 0},
      {{.received_ms = kNow, .lifetime = 60, .stale_while_revalidate = 10, .stale_if_error = 5},
       70},
      {{.received_ms = kNow, .lifetime = 60, .stale_if_error = 5, .never_stale = true}, 60},
      {{.received_ms = kNow, .never_stale = true, .has_validator = true}, 300},
      {{.received_ms = kNow, .lifetime = 60, .stale_if_error = 900, .has_validator = true}, 960},
  };
  for (const auto& row : rows) EXPECT_EQ(time_left(row.terms, kNow), row.left);
}

RC_GTEST_PROP(EntryLaw, WhatIsWrittenIsRead, ()) {
  Entry written;
  const auto bits = *rc::gen::inRange(0, 32);
  written.status = static_cast<std::uint16_t>(*rc::gen::inRange(200, 600));
  const auto seconds = [] {
    return static_cast<std::uint32_t>(*rc::gen::inRange<std::int64_t>(0, kForever + 1));
  };
  const auto ms = [] { return *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 52); };
  written.terms = {.received_ms = ms(),
                   .initial_age = seconds(),
                   .lifetime = seconds(),
                   .stale_while_revalidate = seconds(),
                   .stale_if_error = seconds(),
                   .validate_always = (bits & 1) != 0,
                   .never_stale = (bits & 2) != 0,
                   .immutable = (bits & 4) != 0,
                   .has_validator = (bits & 8) != 0,
                   .for_authorized = (bits & 16) != 0};
  written.asked_ms = ms();
  const auto key = *rc::gen::arbitrary<std::string>();
  const auto tags = *rc::gen::arbitrary<std::string>();
  const auto body = *rc::gen::arbitrary<std::string>();
  const auto value_of_field = *rc::gen::string<std::string>();
  std::string plain;
  for (const char octet : value_of_field) plain += octet == '\0' ? 'x' : octet;
  const std::vector<Selector> said{{"accept", true, plain}, {"x-user", false, ""}};
  const std::string selectors = pack(said);
  written.key = key;
  written.tags = tags;
  written.selectors = selectors;
  written.body = body;
  written.length = body.size();
  const std::string value = value_of(written);
  const auto read = read_entry(value);
  RC_ASSERT(read.has_value());
  RC_ASSERT(value_of(*read) == value);
  RC_ASSERT(unpack(read->selectors) == said);
}

RC_GTEST_PROP(EntryLaw, NoOctetCanBeAnother, ()) {
  const auto body = *rc::gen::arbitrary<std::string>();
  std::string value = value_of(answer(body));
  const auto at = *rc::gen::inRange<std::size_t>(0, value.size());
  const auto by = *rc::gen::inRange(1, 256);
  value[at] = static_cast<char>(value[at] ^ by);
  RC_ASSERT(!read_entry(value));
}

}  // namespace
}  // namespace clockwise::cache
