#include "admin/server_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace clockwise::admin {
namespace {

using config::ServerState;
using testing::HasSubstr;

TEST(ServerChange, ReadsStateAndWeight) {
  const auto both = read_server_change(R"( {"state": "draining", "weight": 2.5} )");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->state, ServerState::draining);
  EXPECT_EQ(both->weight, 2.5);
  const auto weight = read_server_change(R"({"weight":0})");
  ASSERT_TRUE(weight);
  EXPECT_FALSE(weight->state);
  EXPECT_EQ(weight->weight, 0);
  EXPECT_EQ(read_server_change(R"({"state":"down"})")->state, ServerState::down);
  EXPECT_EQ(read_server_change(R"({"state":"active"})")->state, ServerState::active);
}

TEST(ServerChange, SaysWhatIsWrongAndWhere) {
  const struct {
    std::string body, message;
  } rows[]{
      {"", "the body is not JSON (incomplete JSON, at line 1, column 1)"},
      {"{\"state\":\n  drain}", "at line 2, column 3)"},
      {R"({"weight":1}{)", "goes on behind its value, at line 1, column 13"},
      {"[]", "nothing to change; wanted is an object such as"},
      {"{}", "nothing to change"},
      {R"({"state":"up"})", R"(state: "up" is not one of active, draining, down)"},
      {R"({"state":null})", "state: null is not one of"},
      {R"({"weight":"3"})", R"(weight: "3" is not a number from 0 to 10000)"},
      {R"({"weight":-1})", "weight: -1 is not a number"},
      {R"({"weight":10001})", "weight: 10001 is not a number"},
      {R"({"weight":true})", "weight: true is not a number"},
      {R"({"weight":1e999})", "weight: a number beyond all bounds is not a number"},
      {R"({"weight":-0.0})", "weight: -0 is not a number"},
      {R"({"weight":1e-320})", "e-320 is not a number from 0 to 10000"},
      {R"({"weight":[1]})", "weight: a list is not a number"},
      {R"({"state":{"state":"down"}})", "state: an object is not one of"},
      {R"({"weight":1, "weight" : 2})", "weight: stands twice, again at line 1, column 14"},
      {R"({"state":"down","st\u0061te":"active"})",
       "state: stands twice, again at line 1, column 17"},
      {"{\"\\u0077eight\":1,\n \"weight\":1}", "weight: stands twice, again at line 2, column 2"},
      {R"({"State":"down"})", R"(unknown field "State"; there are: state, weight)"},
  };
  for (const auto& row : rows) {
    const auto change = read_server_change(row.body);
    ASSERT_FALSE(change) << row.body;
    EXPECT_THAT(change.error().message, HasSubstr(row.message)) << row.body;
  }
}

TEST(ServerChange, ReadsAWeightAsTheConfigurationDoes) {
  EXPECT_EQ(read_server_change(R"({"weight":25e-1})")->weight, 2.5);
  EXPECT_EQ(read_server_change(R"({"weight":1E4})")->weight, 10'000);
  EXPECT_EQ(read_server_change(R"({"weight":0.0})")->weight, 0);
}

TEST(ServerChange, AValueIsNoFieldOfThatName) {
  EXPECT_THAT(read_server_change(R"({"state":"weight","weight":1})").error().message,
              HasSubstr(R"(state: "weight" is not one of)"));
  EXPECT_THAT(read_server_change(R"({"x\"{":{"state":1},"state":"down"})").error().message,
              HasSubstr("unknown field"));
}

TEST(ServerChange, AMessageIsShortWhateverWasSent) {
  const std::string much(1'000'000, 'x');
  for (const std::string& body :
       {R"({"state":")" + much + R"("})", R"({"weight":")" + much + R"("})",
        R"({"weight":[")" + much + R"("]})", R"({"state":{")" + much + R"(":1}})",
        R"({")" + much + R"(":1})"}) {
    const auto change = read_server_change(body);
    ASSERT_FALSE(change);
    EXPECT_LT(change.error().message.size(), 300U) << body.substr(0, 20);
  }
}

}  // namespace
}  // namespace clockwise::admin
