#include "cli/explain_text.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

namespace clockwise::cli {
namespace {

namespace json = boost::json;
using testing::EndsWith;
using testing::HasSubstr;

constexpr char kHome[] = R"({
  "key": "user:{42}", "hash": "25", "server": "b", "address": "b:80", "replicas": ["b"],
  "previous": "a", "canonical_key": "42", "slot": null,
  "point_before": {"position": "20", "server": "a"},
  "points_after": [{"position": "30", "server": "b"}, {"position": "40", "server": "a"}],
  "walk": [
    {"position": "30", "server": "b", "address": "b:80", "state": "active", "health": "up",
     "requests_in_flight": 3},
    {"position": "20", "server": "a", "address": "a:80", "state": "active", "health": "up",
     "requests_in_flight": 0},
    {"position": null, "server": "off", "address": "o:80", "state": "draining",
     "health": "unknown", "requests_in_flight": null}],
  "chosen": "b", "reason": "home"})";

json::object home() { return json::parse(kHome).get_object(); }

TEST(ExplainText, IsAPictureOfTheWalk) {
  EXPECT_EQ(explain_text(home()),
            "key       \"user:{42}\"\n"
            "hashed    \"42\", the part of it that counts\n"
            "hash      25\n"
            "\n"
            "points around it\n"
            "                      20   a\n"
            "  >                   25   the key\n"
            "                      30   b\n"
            "                      40   a\n"
            "\n"
            "walk\n"
            "  1. b                      30  active    up       3 in flight\n"
            "  2. a                      20  active    up       0 in flight\n"
            "   - off          off the ring  draining  unknown\n"
            "\n"
            "chosen    b, its home: the first point at or after the hash is its own\n"
            "previous  a, before the newest change\n");
}

TEST(ExplainText, GivesTheReasonOfTheChoice) {
  json::object before = home();
  before["walk"].at(0).as_object()["position"] = "20";
  EXPECT_THAT(explain_text(before),
              HasSubstr("the point before the hash is the nearest, and its own"));

  json::object failover = home();
  failover["chosen"] = "a";
  failover["reason"] = "failover";
  EXPECT_THAT(explain_text(failover), HasSubstr("chosen    a, failover: b cannot be used\n"));

  json::object nobody = home();
  nobody["chosen"] = nobody["reason"] = nobody["previous"] = nullptr;
  EXPECT_THAT(explain_text(nobody),
              EndsWith("chosen    nobody: no server that a request tries can be used\n"));
  nobody["server"] = nullptr;
  EXPECT_THAT(explain_text(nobody), EndsWith("nobody: no server is on the ring\n"));
}

TEST(ExplainText, MarksTheSlotOfATable) {
  json::object table = home();
  table["slot"] = "30";
  const std::string text = explain_text(table);
  EXPECT_THAT(text, HasSubstr("slot      30\n"));
  EXPECT_THAT(text, HasSubstr("slots around it\n"
                              "                      20   a\n"
                              "  >                   30   b\n"));
  EXPECT_THAT(text, HasSubstr("its home: the slot is its own"));
}

TEST(ExplainText, KeysShowWhateverTheyHold) {
  json::object odd = home();
  odd["key"] = odd["canonical_key"] = "a\"\x1b[2J\n\xff";
  EXPECT_THAT(explain_text(odd), HasSubstr("key       \"a\\\"\\u001b[2J\\n\\ufffd\"\nhash"));
}

}  // namespace
}  // namespace clockwise::cli
