#include "config/yaml_depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>

#include "config/yaml.h"
#include "config/yaml_text.h"
#include "support/configs.h"

namespace clockwise::config {
namespace {

std::size_t place_beyond(std::string_view text, const BracketLimits& limits) {
  const auto beyond = bracket_beyond(text, limits);
  return beyond ? beyond->offset : yaml_text::kNone;
}

std::size_t bracket_deeper_than(std::string_view text, std::size_t levels) {
  return place_beyond(text, {.levels = levels});
}

std::size_t bracket_wider_than(std::string_view text, std::size_t commas) {
  return place_beyond(text, {.commas = commas});
}

using yaml_text::kNone;

std::string many(char c) { return std::string(100, c); }

TEST(YamlDepth, BracketsInTextAreNone) {
  const std::string texts[]{
      "a: '" + many('[') + "'",
      "a: 'it''s " + many('[') + "'",
      "a: \"\\\" " + many('{') + "\"",
      "a: \"two\n lines " + many('{') + "\"",
      "a: [b] #" + many('['),
      "#" + many('[') + "\na: b",
      "a: b[" + many('['),
      "a: b " + many('{') + "\n  c" + many('['),
      "- b " + many('{') + "\n- c" + many('['),
      "a: :" + many('['),
      "a: -" + many('['),
      "a: |\n " + many('[') + "\n\n " + many('{') + "\nb: c",
      "a: >2-  # why\n   " + many('['),
      "- a: |\n    " + many('[') + "\n  b: c",
      "a:\n  - |-\n   " + many('[') + "\n  - b",
      "? |\n " + many('['),
      "a: &name >\n  it's \"\n  " + many('['),
      "a: [-b' , :c', d]\r\n# it's " + many('[') + "\r\n",
      "a: {b: c, 'd'" + std::string(": '") + many('[') + "'}",
  };
  for (const std::string& text : texts) EXPECT_EQ(bracket_deeper_than(text, 5), kNone) << text;
}

TEST(YamlDepth, CommasOfAnOutermostBracket) {
  EXPECT_EQ(bracket_wider_than("a: [1, 2, 3]", 2), kNone);
  EXPECT_EQ(bracket_wider_than("a: [1, 2, 3, 4]", 2), 11U);
  EXPECT_EQ(bracket_wider_than("a: [{b: 1, c: 2}, {b: 3, c: 4}]", 2), 23U);
  EXPECT_EQ(bracket_wider_than("- [1, 2, 3]\n- [4, 5, 6]", 2), kNone) << "each its own";
  EXPECT_EQ(bracket_wider_than("- a, b, c, d, e\n- 'f, g, h, i'\n# [,,,,,\n", 2), kNone);
  EXPECT_EQ(bracket_wider_than("a: |\n  [1, 2, 3, 4]\nb: ['1, 2, 3, 4']", 2), kNone);
}

TEST(YamlDepth, TellsThePlace) {
  const auto place = [](std::string_view text, std::size_t levels) {
    return bracket_deeper_than(text, levels);
  };
  EXPECT_EQ(place("[[[", 2), 2U);
  EXPECT_EQ(place("[[],[],{a: [", 2), 11U);
  EXPECT_EQ(place("a: [\nb, {", 2), 8U);
  EXPECT_EQ(place("- a: [", 2), 5U) << "blocks count too";
  EXPECT_EQ(place("a:\n- b\nc: [[", 2), 11U) << "as long as they go on";
  EXPECT_EQ(place("a: [b, it's, [", 2), 13U) << "an apostrophe is no quote";
  EXPECT_EQ(place("a: [b#, [", 2), 8U) << "no comment without a blank";
  EXPECT_EQ(place("- a: |\n  [[", 2), 9U) << "no text of a block scalar: not indented enough";
  EXPECT_EQ(place("!t [[[", 2), 5U);
  EXPECT_EQ(place("a: &x [[", 2), 7U);
  EXPECT_EQ(place(std::string(1000, '-') + "\n[[[", 2), kNone) << "one plain text";
}

std::size_t depth_of(const Node& node) {
  std::size_t depth = 0;
  for (const Node* item : node.items) depth = std::max(depth, depth_of(*item));
  for (const Entry& entry : node.entries) depth = std::max(depth, depth_of(*entry.value));
  return depth + (node.kind == Kind::sequence || node.kind == Kind::map ? 1 : 0);
}

// Nothing for what the library does not take.
std::optional<std::size_t> depth_of(const std::string& text) {
  const auto source = Source::decode("", text);
  Report report;
  const auto document = parse_yaml(std::get<0>(source), report);
  if (!document) return std::nullopt;
  return depth_of(*document->root);
}

// Whatever the library reads is cut into the same tokens: nothing legal is taken for deeper than
// it is, and no bracket behind it is overlooked.
TEST(YamlDepth, AgreesWithTheLibrary) {
  constexpr std::array<std::string_view, 34> kPieces{
      "[",  "]",  "{",    "}",    ", ",   ",",   ": ", ":",  "- ",   "-",   "? ", "?",
      "#",  " #", "\n",   "\n",   "\n  ", "\n ", " ",  "a",  "b: ",  "c: ", "'",  "\"",
      "\\", "|",  "|\n ", ">1\n", "&n ",  "!",   "\t", "''", "\r\n", "\n- "};
  std::minstd_rand random(20240501);  // NOLINT(cert-msc*): the same texts each time
  constexpr std::size_t kRounds = 20'000;
  std::size_t legal = 0, longer = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::string text;
    for (std::size_t left = 1 + random() % 14; left > 0; --left)
      text += kPieces[random() % kPieces.size()];
    if (const auto depth = depth_of(text)) {
      ++legal;
      EXPECT_EQ(bracket_deeper_than(text, *depth), kNone) << text;
    }
    // Too short to be as deep without the end; a quote without an end may have swallowed that.
    text += "\nz: [[[[[[[[[[]]]]]]]]]]";
    if (depth_of(text) != 11U) continue;
    ++longer;
    EXPECT_EQ(bracket_deeper_than(text, 11), kNone) << text;
    EXPECT_NE(bracket_deeper_than(text, 10), kNone) << text;
  }
  EXPECT_GT(longer, kRounds / 100);
  EXPECT_GT(legal, kRounds / 100);
}

}  // namespace
}  // namespace clockwise::config
