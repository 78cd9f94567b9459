// Known answers of the hash functions. Where a function is as its author published it, the answer
// is the published one; the peers' own variants were computed by a second implementation, and
// placement_vectors_test.cpp holds them against the peers.
#include "ring/hashes.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace clockwise::ring {
namespace {

// The last one has octets above 0x7f, which count below zero where octets are signed.
constexpr std::string_view kTexts[] = {"", "a", "foobar", "user:1234567", "/img/café?x=กร"};

struct Row {
  const char* name;
  std::uint32_t (*function)(std::string_view) noexcept;
  std::uint32_t answers[std::size(kTexts)];
};

TEST(Hashes, OfThirtyTwoBits) {
  const Row rows[] = {
      {"fnv1_32", fnv1_32, {0x811c9dc5, 0x050c5d7e, 0x31f0b262, 0xa5b1531a, 0xa2c54e8c}},
      {"fnv1a_32", fnv1a_32, {0x811c9dc5, 0xe40c292c, 0xbf9cf968, 0xd122dfa8, 0x83cc1826}},
      {"fnv1_64", fnv1_64_low, {0x84222325, 0x8601b7be, 0xa4dda9c2, 0xd1d690fa, 0x419938ec}},
      {"fnv1a_64", fnv1a_64_low, {0x84222325, 0x8601ec8c, 0xf73967e8, 0x052033a8, 0xd1cd6e26}},
      {"one_at_a_time", one_at_a_time, {0, 0xca2e9442, 0xf952fde7, 0x574128ed, 0x134daabb}},
      {"jenkins", jenkins, {0xdeadbefc, 0xe0a38690, 0x0fdd8b60, 0x3fab4103, 0x93eb9d41}},
      {"hsieh", hsieh, {0, 0x93642e87, 0x07a5862c, 0x68ec45f3, 0x6fb77ad1}},
      {"murmur2_32", murmur2_32, {0, 0x4b41757c, 0xabecff17, 0x095f3943, 0x05b62df5}},
      {"crc32", crc32, {0, 0xe8b7be43, 0x9ef61f95, 0x9005d94a, 0xbe7b40b1}},
      {"crc32_high", crc32_high, {0, 0x68b7, 0x1ef6, 0x1005, 0x3e7b}},
      {"crc16_uncut", crc16_uncut, {0, 0x7c87, 0x9effb025, 0x4766fcd4, 0x2f6b0644}},
      {"sdbm", sdbm, {0, 0x61, 0xa6437b0d, 0x679d2305, 0x9895f793}},
      {"djb2", djb2, {0x1505, 0x2b606, 0xfde460be, 0xd3418bea, 0x5457023e}},
      {"wt6", wt6, {0xf99a0360, 0x714bf225, 0xd680a6cc, 0xd29a55c9, 0xf7816740}},
      {"ketama", ketama_md5, {0xd98c1dd4, 0xb975c10c, 0x22f65838, 0x96a759a9, 0xeba6a18d}},
      {"varnish", varnish_sha256, {0x55b85278, 0xbb48eeaf, 0xf2c4f0ae, 0x4a1a946d, 0x6e4eaeaa}},
  };
  for (const Row& row : rows)
    for (std::size_t i = 0; i < std::size(kTexts); ++i)
      EXPECT_EQ(row.function(kTexts[i]), row.answers[i])
          << row.name << " of \"" << kTexts[i] << '"';
}

TEST(Hashes, OfSixtyFourBits) {
  EXPECT_EQ(xxh64(""), 0xef46db3751d8e999u);
  EXPECT_EQ(xxh64("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(xxh3(""), 0x2d06800538d394c2u);
  EXPECT_EQ(xxh3("abc"), 0x78af5f94892f3950u);
  EXPECT_EQ(fnv1a_64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a_64("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(siphash13_of_str("key:0"), 855724895160116599u);
  EXPECT_EQ(siphash13(std::string(8, '\0')), 13646096770106105413u);
}

TEST(Hashes, ATerminatedStringIsTheTextWithTheOctetBehindIt) {
  std::string text;
  for (int length = 0; length < 40; ++length, text += static_cast<char>('a' + length))
    EXPECT_EQ(siphash13_of_str(text), siphash13(text + '\xff')) << text;
}

#ifdef __GLIBCXX__
TEST(Hashes, Murmur2OfSixtyFourBitsIsTheOneOfTheStandardLibrary) {
  std::string text;
  for (int length = 0; length < 40; ++length, text += static_cast<char>(0x70 + length))
    EXPECT_EQ(murmur2_64(text), std::hash<std::string>()(text)) << length;
}
#endif

TEST(Hashes, Digests) {
  EXPECT_EQ((std::array{md5("")[0], md5("")[15]}), (std::array<std::uint8_t, 2>{0xd4, 0x7e}));
  EXPECT_EQ((std::array{sha1("abc")[0], sha1("abc")[19]}),
            (std::array<std::uint8_t, 2>{0xa9, 0x9d}));
  EXPECT_EQ((std::array{sha256("abc")[0], sha256("abc")[31]}),
            (std::array<std::uint8_t, 2>{0xba, 0xad}));
}

TEST(Hashes, WordsOfADigestAreLittleEndian) {
  const Md5 digest = md5("");  // d41d8cd9 8f00b204 e9800998 ecf8427e
  EXPECT_EQ(ketama_word(digest, 0), 0xd98c1dd4u);
  EXPECT_EQ(ketama_word(digest, 3), 0x7e42f8ecu);
}

TEST(Hashes, ChecksumsContinue) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32_after(crc32("1234"), "56789"), 0xcbf43926u);
  EXPECT_EQ(crc32_after(crc32("1234"), {}), crc32("1234"));
}

TEST(Hashes, AvalancheMixes) {
  EXPECT_EQ(avalanche(0), 0xab4ed927u);
  EXPECT_EQ(avalanche(1), 0x348681b6u);
  EXPECT_EQ(avalanche(4096), 0x49c2008bu);
  EXPECT_EQ(avalanche(0xffffffff), 0x7e64c182u);
}

}  // namespace
}  // namespace clockwise::ring
