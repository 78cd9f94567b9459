#include "memcached/replicas.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace clockwise::memcached {
namespace {

Command command_of(std::string_view line) {
  Command command;
  Refusal refusal;
  std::size_t seen = 0;
  EXPECT_EQ(scan_command(line, 1000, seen, command, refusal), Scanned::command) << line;
  return command;
}

std::string line_of(const Command& command) {
  std::string line;
  append_line(command, line);
  EXPECT_TRUE(line.ends_with("\r\n"));
  return line.substr(0, line.size() - 2);
}

TEST(Replicas, WhomACommandIsFor) {
  struct Row {
    std::string_view line;
    Reach reach;
  };
  const Row rows[] = {
      {"get k\r\n", Reach::search},
      {"gets k\r\n", Reach::search},
      {"gat 5 k\r\n", Reach::search},
      {"gats 5 k\r\n", Reach::search},
      {"mg k v T5 R30\r\n", Reach::search},
      {"mg k ON v\r\n", Reach::search},
      {"me k\r\n", Reach::search},
      {"mg k v N30\r\n", Reach::first},
      {"set k 0 0 1\r\n", Reach::all},
      {"append k 0 0 1\r\n", Reach::all},
      {"prepend k 0 0 1\r\n", Reach::all},
      {"delete k\r\n", Reach::all},
      {"incr k 1\r\n", Reach::all},
      {"decr k 1\r\n", Reach::all},
      {"touch k 1\r\n", Reach::all},
      {"ms k 1 F5 T5\r\n", Reach::all},
      {"ms k 1 MS\r\n", Reach::all},
      {"ms k 1 MA N5\r\n", Reach::all},
      {"ms k 1 OC5 MP\r\n", Reach::all},
      {"md k I T5\r\n", Reach::all},
      {"ma k MD N5 J7\r\n", Reach::all},
      {"add k 0 0 1\r\n", Reach::decided},
      {"replace k 0 0 1\r\n", Reach::decided},
      {"cas k 0 0 1 7\r\n", Reach::decided},
      {"ms k 1 ME\r\n", Reach::decided},
      {"ms k 1 MR\r\n", Reach::decided},
      {"ms k 1 MA C7\r\n", Reach::decided},
      {"md k C7\r\n", Reach::decided},
      {"ma k C7\r\n", Reach::decided},
  };
  for (const Row& row : rows) EXPECT_EQ(reach_of(command_of(row.line)), row.reach) << row.line;
}

TEST(Replicas, WhoFollowsHasNoConditionAndSaysNothing) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"add k 5 6 1\r\n", "set k 5 6 1"},
      {"replace k 5 6 1\r\n", "set k 5 6 1"},
      {"cas k 5 6 1 77\r\n", "set k 5 6 1"},
      {"ms k 1 ME F5 T6 k O1 c q\r\n", "ms k 1 F5 T6"},
      {"ms YWJj 1 b MR F5 C7 I\r\n", "ms YWJj 1 b F5"},
      {"ms k 1 MA N9 C7 T3\r\n", "ms k 1 MA N9 T3"},
      {"ms k 1 MS N9 C7\r\n", "ms k 1"},
      {"md k C7 I T30 q k\r\n", "md k I T30"},
      {"ma k C7 MD D5 J6 N7 T8 v c\r\n", "ma k MD D5 J6 N7 T8"},
  };
  for (const auto& [line, wanted] : rows) {
    std::string scratch;
    EXPECT_EQ(line_of(follower_of(command_of(line), scratch)), wanted) << line;
  }
}

TEST(Replicas, WhatMakesAnItem) {
  for (const char* line : {"ma k N5\r\n", "ms k 1 MA N5\r\n", "ms k 1 N5 MP\r\n"})
    EXPECT_TRUE(makes(command_of(line))) << line;
  for (const char* line : {"ma k\r\n", "ma k ON5\r\n", "ms k 1 N5\r\n", "ms k 1 MA\r\n",
                           "mg k N5\r\n", "set N5 0 0 1\r\n", "incr k 1\r\n"})
    EXPECT_FALSE(makes(command_of(line))) << line;
  std::string scratch;
  EXPECT_EQ(line_of(without_making(command_of("ma k J5 N30 v ON1\r\n"), scratch)), "ma k J5 v ON1");
}

TEST(Replicas, TheLifetimeThatAReadSets) {
  EXPECT_EQ(touch_of(command_of("gat 30 k\r\n")), 30);
  EXPECT_EQ(touch_of(command_of("gats -1 k\r\n")), -1);
  EXPECT_EQ(touch_of(command_of("mg k v T0\r\n")), 0);
  EXPECT_EQ(touch_of(command_of("mg k v t\r\n")), std::nullopt);
  EXPECT_EQ(touch_of(command_of("get k\r\n")), std::nullopt);
  EXPECT_EQ(touch_of(command_of("touch k 5\r\n")), std::nullopt);
}

TEST(Replicas, AUniqueComesBackAsTheServerCounts) {
  for (const std::uint64_t unique : {0UL, 1UL, 77UL, (1UL << 60) - 1, ~0UL}) {
    EXPECT_EQ(unique_at(unique, 0), unique);
    for (std::uint32_t place = 1; place < 16; ++place) {
      EXPECT_NE(unique_at(unique, place), unique);
      EXPECT_EQ(unique_at(unique_at(unique, place), place), unique);
      EXPECT_NE(unique_at(unique_at(unique, place), 0), unique);
    }
  }
  // Who stands in behind sixteen owners has no mark.
  EXPECT_EQ(unique_at(77, 16), 77U);
}

TEST(Replicas, AConditionIsOfTheOwnerThatDecides) {
  const std::string marked = std::to_string(unique_at(77, 2));
  const auto at = [](const std::string& line, std::uint32_t place) {
    std::string scratch;
    return line_of(command_at(command_of(line), place, scratch));
  };
  EXPECT_EQ(at("cas k 0 0 1 " + marked + "\r\n", 2), "cas k 0 0 1 77");
  EXPECT_EQ(at("cas k 0 0 1 " + marked + "\r\n", 0), "cas k 0 0 1 " + marked);
  EXPECT_EQ(at("cas k 0 0 1 77\r\n", 2), "cas k 0 0 1 " + marked);
  EXPECT_EQ(at("ms k 1 C" + marked + " F5 c\r\n", 2), "ms k 1 F5 c C77");
  EXPECT_EQ(at("ms k 1 C77 F5\r\n", 0), "ms k 1 C77 F5");
  EXPECT_EQ(at("md k OC1 C" + marked + "\r\n", 2), "md k OC1 C77");
  EXPECT_EQ(at("md k\r\n", 2), "md k");
}

TEST(Replicas, AnAnswerHasItsUniqueMarked) {
  const std::string marked = std::to_string(unique_at(77, 3));
  const std::pair<std::string, std::string> rows[] = {
      {"VALUE k 5 6 77", "VALUE k 5 6 " + marked},
      {"VALUE k 5 77", "VALUE k 5 77"},
      {"VALUE c77 5 6 77", "VALUE c77 5 6 " + marked},
      {"HD c77", "HD c" + marked},
      {"HD Oc77 kc77 c77 t-1", "HD Oc77 kc77 c" + marked + " t-1"},
      {"VA 6 f5 c77", "VA 6 f5 c" + marked},
      {"VA 6", "VA 6"},
      {"EN", "EN"},
      {"ME k exp=-1 cas=77", "ME k exp=-1 cas=77"},
      {"SERVER_ERROR c77", "SERVER_ERROR c77"},
      {"77", "77"},
  };
  for (const auto& [line, wanted] : rows) {
    Reply reply;
    std::size_t seen = 0;
    const std::string octets = line + "\r\n";
    ASSERT_EQ(scan_reply(octets, UINT32_MAX, seen, reply), ReplyScan::complete) << line;
    std::string out = "before ";
    append_answer(reply, 3, out);
    EXPECT_EQ(out, "before " + wanted + "\r\n");
    out.clear();
    append_answer(reply, 0, out);
    EXPECT_EQ(out, octets);
  }
}

TEST(Replicas, AKeyThatNoLineCanHaveIsNamedInBase64) {
  std::string key, scratch;
  EXPECT_EQ(line_of(deletion_of("abc", key)), "delete abc");
  EXPECT_EQ(line_of(deletion_of("a b", key)), "md YSBi b");
  EXPECT_EQ(line_of(touch_for("abc", -1, key, scratch)), "touch abc -1");
  EXPECT_EQ(line_of(touch_for("a b", 30, key, scratch)), "mg YSBi b T30");
}

TEST(Replicas, WhatAnAnswerMeans) {
  using enum ReplyKind;
  EXPECT_EQ(did(Verb::set, stored), Did::done);
  EXPECT_EQ(did(Verb::incr, number), Did::done);
  EXPECT_EQ(did(Verb::meta_arithmetic, value), Did::done);
  EXPECT_EQ(did(Verb::remove, not_found), Did::missed);
  EXPECT_EQ(did(Verb::append, not_stored), Did::missed);
  EXPECT_EQ(did(Verb::meta_set, meta_not_stored), Did::missed);
  EXPECT_EQ(did(Verb::meta_get, end), Did::missed);
  EXPECT_EQ(did(Verb::cas, exists), Did::refused);
  EXPECT_EQ(did(Verb::incr, client_error), Did::refused);
  EXPECT_EQ(did(Verb::set, client_error), Did::failed);
  EXPECT_EQ(did(Verb::set, server_error), Did::failed);
  EXPECT_EQ(did(Verb::touch, error), Did::failed);
}

}  // namespace
}  // namespace clockwise::memcached
