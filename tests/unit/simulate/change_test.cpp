#include "simulate/change.h"

#include <gmock/gmock.h>

#include "unit/simulate/support.h"

namespace clockwise::simulate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Change, NumbersMakeNames) {
  const Change change = read_change({"2", "1", ""}).value();
  EXPECT_EQ(change.before, nodes({"node-1", "node-2"}));
  EXPECT_EQ(change.after, nodes({"node-1", "node-2", "node-3"}));
}

TEST(Change, AMadeNameIsNeverOneThatIsTaken) {
  EXPECT_EQ(read_change({"node-2", "1", ""}).value().after, nodes({"node-2", "node-3"}));
  EXPECT_EQ(read_change({"node-3,a", "2", ""}).value().after,
            nodes({"node-3", "a", "node-4", "node-5"}));
}

TEST(Change, AMadeNameIsNotThatOfAServerThatGoes) {
  EXPECT_EQ(read_change({"3", "1", "1"}).value().after, nodes({"node-1", "node-2", "node-4"}));
  EXPECT_EQ(read_change({"3", "2", "node-1"}).value().after,
            nodes({"node-2", "node-3", "node-4", "node-5"}));
  EXPECT_DOUBLE_EQ(minimum_ratio(read_change({"3", "1", "1"}).value()), 1.0 / 3);
  // A name that is given is taken as it is.
  EXPECT_EQ(read_change({"a,b", "b", "b"}).value().after, nodes({"a", "b"}));
}

TEST(Change, NamesCarryWeights) {
  const Change change = read_change({"a,10.0.0.1:80=2.5", "c=0", "a"}).value();
  EXPECT_EQ(change.before, (Nodes{{"a", 1}, {"10.0.0.1:80", 2.5}}));
  EXPECT_EQ(change.after, (Nodes{{"10.0.0.1:80", 2.5}, {"c", 0}}));
}

TEST(Change, ANumberToRemoveCountsFromTheEnd) {
  EXPECT_EQ(read_change({"a,b,c", "", "2"}).value().after, nodes({"a"}));
}

TEST(Change, WhatIsWrongIsNamed) {
  const struct {
    ChangeText text;
    const char* message;
  } cases[] = {
      {{"a,,b", "", ""}, "--nodes: \"\" is no name of a server"},
      {{"a b", "", ""}, "--nodes: \"a b\" is no name of a server"},
      {{"a,b,a", "", ""}, "--nodes: the server a is there twice"},
      {{"a,b", "b", ""}, "--add: the server b is there twice"},
      {{"a=heavy", "", ""}, "the weight \"heavy\" of a is not a number, 0 to 10000"},
      {{"a=-1", "", ""}, "the weight \"-1\" of a is not a number, 0 to 10000"},
      {{"a=nan", "", ""}, "the weight \"nan\" of a is not a number, 0 to 10000"},
      {{"a,b", "", "c"}, "--remove: there is no server \"c\" among --nodes"},
      {{"a,b", "", "2"}, "after the change there is no server"},
      {{"a=0", "b", ""}, "before the change there is no server with a weight above 0"},
      {{"99999", "", ""}, "--nodes 99999: at most 10000 servers"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = read_change(text);
    ASSERT_FALSE(read) << message;
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
}

TEST(Change, MinimumIsWhatTheWeightsGain) {
  EXPECT_DOUBLE_EQ(minimum_ratio({nodes({"a", "b", "c"}), nodes({"a", "b", "c", "d"})}), 0.25);
  EXPECT_DOUBLE_EQ(minimum_ratio({nodes({"a", "b", "c", "d"}), nodes({"a", "c", "d"})}), 0.25);
  EXPECT_DOUBLE_EQ(minimum_ratio({{{"a", 1}, {"b", 1}}, {{"a", 3}, {"b", 1}}}), 0.25);
  EXPECT_DOUBLE_EQ(minimum_ratio({nodes({"a", "b"}), nodes({"b", "a"})}), 0);
}

TEST(Change, ServersAreMatchedByName) {
  EXPECT_THAT(match(nodes({"b", "x", "a"}), nodes({"a", "b"})), ElementsAre(1u, std::nullopt, 0u));
}

TEST(Keys, TheNumberStandsInItsPlace) {
  const KeySeries series = KeySeries::parse("/item/{}?v=1", 100).value();
  std::string buffer;
  EXPECT_EQ(series.write(0, buffer), "/item/0?v=1");
  EXPECT_EQ(series.write(99, buffer), "/item/99?v=1");
}

TEST(Keys, AFormatNeedsOnePlaceAndAnExperimentAKey) {
  EXPECT_THAT(KeySeries::parse("key", 1).error().message, HasSubstr("needs {} once"));
  EXPECT_THAT(KeySeries::parse("{}{}", 1).error().message, HasSubstr("needs {} once"));
  EXPECT_THAT(KeySeries::parse("{}", 0).error().message, HasSubstr("0 keys"));
}

}  // namespace
}  // namespace clockwise::simulate
