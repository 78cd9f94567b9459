#include "memcached/reply.h"

#include <gtest/gtest.h>

#include <string>

namespace clockwise::memcached {
namespace {

using namespace std::string_literals;

constexpr std::uint32_t kLargest = 1000;

ReplyScan scan(std::string_view octets, Reply& reply) {
  std::size_t scanned = 0;
  return scan_reply(octets, kLargest, scanned, reply);
}

Reply reply_of(const std::string& line) {
  static std::string octets;
  octets = line + "\r\nmore";
  Reply reply;
  EXPECT_EQ(scan(octets, reply), ReplyScan::complete) << line;
  EXPECT_EQ(reply.size, line.size() + 2) << line;
  EXPECT_EQ(reply.line, line);
  return reply;
}

TEST(Reply, ReadsValues) {
  const Reply plain = reply_of("VALUE key 4294967295 1000");
  EXPECT_EQ(plain.kind, ReplyKind::value);
  EXPECT_EQ(plain.key, "key");
  EXPECT_EQ(plain.flags, 4294967295U);
  EXPECT_EQ(plain.length, 1000U);
  EXPECT_FALSE(plain.has_unique);

  const Reply unique = reply_of("VALUE k 0 0 18446744073709551615");
  EXPECT_TRUE(unique.has_unique);
  EXPECT_EQ(unique.number, 18446744073709551615U);
  EXPECT_EQ(unique.length, 0U);

  const Reply meta = reply_of("VA 5 t-1 kk O12");
  EXPECT_EQ(meta.kind, ReplyKind::value);
  EXPECT_EQ(meta.length, 5U);
  EXPECT_EQ(meta.rest, "t-1 kk O12");
  EXPECT_EQ(reply_of("VA 0").rest, "");
}

struct Row {
  std::string line;
  ReplyKind kind;
  std::string rest;
};

TEST(Reply, KnowsEveryLine) {
  const Row rows[] = {
      {"END", ReplyKind::end, ""},
      {"EN", ReplyKind::end, ""},
      {"EN O1 kabc", ReplyKind::end, "O1 kabc"},
      {"STORED", ReplyKind::stored, ""},
      {"NOT_STORED", ReplyKind::not_stored, ""},
      {"EXISTS", ReplyKind::exists, ""},
      {"NOT_FOUND", ReplyKind::not_found, ""},
      {"DELETED", ReplyKind::deleted, ""},
      {"TOUCHED", ReplyKind::touched, ""},
      {"OK", ReplyKind::ok, ""},
      {"RESET", ReplyKind::reset, ""},
      {"VERSION 1.6.18", ReplyKind::version, "1.6.18"},
      {"STAT version 1.6.18", ReplyKind::stat, "version 1.6.18"},
      {"STAT empty ", ReplyKind::stat, "empty "},
      {"HD", ReplyKind::meta_done, ""},
      {"HD c12 O1 W", ReplyKind::meta_done, "c12 O1 W"},
      {"NS", ReplyKind::meta_not_stored, ""},
      {"EX O1", ReplyKind::meta_exists, "O1"},
      {"NF", ReplyKind::meta_not_found, ""},
      {"MN", ReplyKind::meta_noop, ""},
      {"ME k exp=-1 la=0", ReplyKind::meta_debug, "k exp=-1 la=0"},
      {"ERROR", ReplyKind::error, ""},
      {"ERROR Too many open connections", ReplyKind::error, "Too many open connections"},
      {"CLIENT_ERROR bad data chunk", ReplyKind::client_error, "bad data chunk"},
      {"SERVER_ERROR", ReplyKind::server_error, ""},
      {"SERVER_ERROR out of memory", ReplyKind::server_error, "out of memory"},
  };
  for (const Row& row : rows) {
    const Reply reply = reply_of(row.line);
    EXPECT_EQ(reply.kind, row.kind) << row.line;
    EXPECT_EQ(reply.rest, row.rest) << row.line;
    EXPECT_EQ(is_error(reply.kind), row.line.find("ERROR") != std::string::npos) << row.line;
  }
  EXPECT_EQ(reply_of("18446744073709551615").number, 18446744073709551615U);
  EXPECT_EQ(reply_of("0").kind, ReplyKind::number);
}

TEST(Reply, BadIsBad) {
  const std::string key(251, 'k');
  for (const std::string& line : {""s,
                                  " "s,
                                  "\r"s,
                                  "end"s,
                                  "END "s,
                                  " END"s,
                                  "ENDS"s,
                                  "END 0"s,
                                  "END\0"s,
                                  "STORED 1"s,
                                  "MN 1"s,
                                  "VALUE"s,
                                  "VALUE "s,
                                  "VALUE k"s,
                                  "VALUE k 0"s,
                                  "VALUE  0 5"s,
                                  "VALUE k 0 "s,
                                  "VALUE k 0 5 "s,
                                  "VALUE k  0 5"s,
                                  "VALUE k 0  5"s,
                                  "VALUE k 0 5  6"s,
                                  "VALUE k 0 5 6 7"s,
                                  "VALUE k 0 5 6 "s,
                                  "VALUE k 0 -1"s,
                                  "VALUE k 0 +1"s,
                                  "VALUE k 0 01"s,
                                  "VALUE k 0 0x1"s,
                                  "VALUE k 0 1001"s,
                                  "VALUE k 0 9223372036854775807"s,
                                  "VALUE k 0 18446744073709551617"s,
                                  "VALUE k 4294967296 1"s,
                                  "VALUE k -1 1"s,
                                  "VALUE k 0 1 -1"s,
                                  "VALUE k 0 1 18446744073709551616"s,
                                  "VALUE k\0 0 1"s,
                                  "VALUE " + key + " 0 1",
                                  "value k 0 1"s,
                                  "VA"s,
                                  "VA "s,
                                  "VA x"s,
                                  "VA -1"s,
                                  "VA 1001"s,
                                  "VA 99999999999999999999"s,
                                  "VA 5 "s,
                                  "VA 5  c1"s,
                                  "VA 5 c1 "s,
                                  "HD "s,
                                  "HD  c1"s,
                                  "HD c1  O1"s,
                                  "HDx"s,
                                  "ME"s,
                                  "ME "s,
                                  "VERSION"s,
                                  "VERSION "s,
                                  "STAT"s,
                                  "STAT "s,
                                  "ERROR "s,
                                  "ERROR: no"s,
                                  "CLIENT_ERROR "s,
                                  "5 "s,
                                  "05"s,
                                  "-5"s,
                                  "+5"s,
                                  "5x"s,
                                  "18446744073709551616"s,
                                  "BUSY"s,
                                  std::string(kMaxReplyLine, 'x')}) {
    Reply reply;
    EXPECT_EQ(scan(line + "\r\n", reply), ReplyScan::bad) << line;
  }
}

TEST(Reply, LinesEndWithBoth) {
  Reply reply;
  EXPECT_EQ(scan("END\n", reply), ReplyScan::bad);
  EXPECT_EQ(scan("\n", reply), ReplyScan::bad);
  EXPECT_EQ(scan("END\r", reply), ReplyScan::more);
  EXPECT_EQ(scan("END\r\r\n", reply), ReplyScan::bad);
}

TEST(Reply, WaitsForNoMoreThanTheLongestLine) {
  const std::string text = "SERVER_ERROR " + std::string(kMaxReplyLine, 'x');
  Reply reply;
  EXPECT_EQ(scan(text.substr(0, kMaxReplyLine - 1), reply), ReplyScan::more);
  EXPECT_EQ(scan(text.substr(0, kMaxReplyLine), reply), ReplyScan::bad);
  EXPECT_EQ(scan(text.substr(0, kMaxReplyLine - 2) + "\r\n", reply), ReplyScan::complete);
  EXPECT_EQ(scan(text.substr(0, kMaxReplyLine - 1) + "\r\n", reply), ReplyScan::bad);
}

TEST(Reply, OctetsAreLookedAtOnce) {
  Reply reply;
  std::size_t seen = 0;
  EXPECT_EQ(scan_reply("STORED", kLargest, seen, reply), ReplyScan::more);
  EXPECT_EQ(seen, 6U);
  EXPECT_EQ(scan_reply("EN\r\nD\r", kLargest, seen, reply), ReplyScan::more);
}

TEST(Reply, FindsFlags) {
  const struct {
    const char* flags;
    char flag;
    bool found;
    const char* value;
  } rows[] = {
      {"", 't', false, ""},        {"t-1", 't', true, "-1"},     {"c5 t60 W", 't', true, "60"},
      {"c5 t60 W", 'W', true, ""}, {"c5 t60 W", 'Z', false, ""}, {"kt5 t7", 't', true, "7"},
      {"Ott t", 't', true, ""},
  };
  for (const auto& row : rows) {
    bool found = !row.found;
    EXPECT_EQ(meta_flag(row.flags, row.flag, found), row.value) << row.flags;
    EXPECT_EQ(found, row.found) << row.flags;
  }
}

TEST(MetaNumber, IsNoughtWhereThereIsNone) {
  EXPECT_EQ(meta_number<std::uint64_t>("f5 t-1 c18446744073709551615", 'c'), UINT64_MAX);
  EXPECT_EQ(meta_number<std::int64_t>("f5 t-1 c7", 't'), -1);
  EXPECT_EQ(meta_number<std::uint32_t>("f5 t-1 c7", 'f'), 5U);
  EXPECT_EQ(meta_number<std::uint32_t>("t-1 c7", 'f'), 0U);
  EXPECT_EQ(meta_number<std::uint32_t>("W f", 'f'), 0U);
  EXPECT_TRUE(has_meta_flag("W f", 'W'));
  EXPECT_FALSE(has_meta_flag("f", 'W'));
}

}  // namespace
}  // namespace clockwise::memcached
