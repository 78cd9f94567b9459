#include "memcached/command.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clockwise::memcached {
namespace {

using namespace std::string_literals;

constexpr std::uint32_t kLargest = 1000;

struct Scan {
  Scanned scanned = Scanned::more;
  Command command;
  Refusal refusal;
};

Scan scan(std::string_view octets) {
  Scan result;
  std::size_t seen = 0;
  result.scanned = scan_command(octets, kLargest, seen, result.command, result.refusal);
  return result;
}

Command command_of(std::string_view line) {
  const Scan result = scan(line);
  EXPECT_EQ(result.scanned, Scanned::command) << line;
  EXPECT_EQ(result.command.line_size, line.size()) << line;
  return result.command;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    words.emplace_back(word);
  }
  return words;
}

TEST(Command, ReadsStorage) {
  const Command set = command_of("set k 7 -1 5 noreply\r\n");
  EXPECT_EQ(set.verb, Verb::set);
  EXPECT_EQ(set.key, "k");
  EXPECT_EQ(set.flags, 7U);
  EXPECT_EQ(set.exptime, -1);
  EXPECT_EQ(set.length, 5U);
  EXPECT_TRUE(set.noreply);

  const Command cas = command_of("cas k 4294967295 0 1000 18446744073709551615\r\n");
  EXPECT_EQ(cas.verb, Verb::cas);
  EXPECT_EQ(cas.flags, 4294967295U);
  EXPECT_EQ(cas.length, 1000U);
  EXPECT_EQ(cas.number, 18446744073709551615U);
  EXPECT_FALSE(cas.noreply);
}

TEST(Command, ReadsRetrievals) {
  const Command get = command_of("get a  b noreply \r\n");
  EXPECT_EQ(get.verb, Verb::get);
  EXPECT_EQ(get.key, "a");
  EXPECT_EQ(get.keys, 3U);
  EXPECT_EQ(words_of(get.rest), (std::vector<std::string>{"b", "noreply"}));
  EXPECT_FALSE(get.noreply);

  const Command gats = command_of("gats -5 a\n");
  EXPECT_EQ(gats.verb, Verb::gats);
  EXPECT_EQ(gats.exptime, -5);
  EXPECT_EQ(gats.key, "a");
  EXPECT_EQ(gats.keys, 1U);
  EXPECT_EQ(gats.rest, "");
}

TEST(Command, ReadsAHundredThousandKeys) {
  std::string line = "get";
  for (int i = 0; i < 100'000; ++i) line += " key" + std::to_string(i);
  line += "\r\n";
  const Command get = command_of(line);
  EXPECT_EQ(get.keys, 100'000U);
  EXPECT_EQ(words_of(get.rest).size(), 99'999U);
}

TEST(Command, ReadsMetaCommands) {
  const Command mg = command_of("mg k v  q O123\r\n");
  EXPECT_EQ(mg.verb, Verb::meta_get);
  EXPECT_EQ(mg.key, "k");
  EXPECT_EQ(mg.rest, "v  q O123");
  EXPECT_TRUE(mg.quiet);
  EXPECT_FALSE(mg.base64_key);

  const Command ms = command_of("ms YWJj 10 b T60\r\n");
  EXPECT_EQ(ms.verb, Verb::meta_set);
  EXPECT_EQ(ms.length, 10U);
  EXPECT_EQ(ms.rest, "b T60");
  EXPECT_TRUE(ms.base64_key);
  std::string scratch;
  EXPECT_EQ(ring_key(ms, scratch), "abc");
  EXPECT_EQ(ring_key(mg, scratch), "k");
}

TEST(Command, RefusalsSayWhatBecomesOfTheBlock) {
  const Scan untrusted = scan("set k 99999999999999999999 0 1\r\n");
  EXPECT_EQ(untrusted.scanned, Scanned::refused);
  EXPECT_EQ(untrusted.refusal.answer, "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(untrusted.refusal.skip, 0U);
  EXPECT_EQ(untrusted.command.line_size, 32U);

  const Scan large = scan("set k 0 0 1001 noreply\r\n");
  EXPECT_EQ(large.scanned, Scanned::refused);
  EXPECT_EQ(large.refusal.answer, "SERVER_ERROR object too large for cache\r\n");
  EXPECT_EQ(large.refusal.skip, 1003U);
  EXPECT_EQ(large.command.key, "k");
  EXPECT_TRUE(large.refusal.deletes_key);
  EXPECT_TRUE(large.refusal.silent);
  EXPECT_FALSE(scan("add k 0 0 1001\r\n").refusal.deletes_key);

  const Scan flag = scan("ms k 10 Z\r\n");
  EXPECT_EQ(flag.refusal.answer, "CLIENT_ERROR invalid flag\r\n");
  EXPECT_EQ(flag.refusal.skip, 12U);
}

TEST(Command, NothingIsThrownAwayBehindACommand) {
  const Scan taken = scan("ms k 10 T0\r\n");
  EXPECT_EQ(taken.scanned, Scanned::command);
  EXPECT_EQ(taken.refusal.skip, 0U);
}

// Where nobody is told, only what happens shows the difference.
TEST(Command, NoreplyIsTheLastWordAndNoArgument) {
  const struct {
    const char* line;
    bool taken;
    bool silent;
  } rows[] = {
      {"delete k noreply", true, true},      {"delete k 0 noreply", true, true},
      {"delete k 5 noreply", false, true},   {"delete k noreply noreply", false, true},
      {"delete noreply", true, false},       {"delete k noreply 0", false, false},
      {"touch k noreply", false, true},      {"touch k 1 noreply", true, true},
      {"touch k 1 more", true, false},       {"incr k noreply", false, true},
      {"decr k 1 noreply", true, true},      {"flush_all noreply", true, true},
      {"flush_all 0 noreply", true, true},   {"flush_all noreply noreply", false, true},
      {"flush_all noreply 0", false, false}, {"verbosity noreply", false, true},
      {"verbosity 1 noreply", true, true},   {"set k 0 0 noreply", false, true},
      {"set k 0 0 1 noreply", true, true},   {"set noreply 0 0 1", true, false},
      {"set k 0 0 noreply 1", false, false}, {"cas k 0 0 1 noreply", false, true},
      {"cas k 0 0 1 1 noreply", true, true}, {"set k 0 0 1 1 noreply", false, false},
      {"get noreply", true, false},          {"mn noreply", true, false},
      {"version noreply", true, false},      {"mg k noreply", false, false},
  };
  for (const auto& row : rows) {
    const Scan result = scan(std::string(row.line) + "\r\n");
    EXPECT_EQ(result.scanned, row.taken ? Scanned::command : Scanned::refused) << row.line;
    EXPECT_EQ(row.taken ? result.command.noreply : result.refusal.silent, row.silent) << row.line;
  }
}

TEST(Command, OctetsAreLookedAtOnce) {
  Command command;
  Refusal refusal;
  std::size_t seen = 0;
  EXPECT_EQ(scan_command("get k", kLargest, seen, command, refusal), Scanned::more);
  EXPECT_EQ(seen, 5U);
  EXPECT_EQ(scan_command("get \nk", kLargest, seen, command, refusal), Scanned::more);
}

TEST(Command, LengthsThatAServerWouldCutAreRefused) {
  for (const char* length : {"4294967297", "-4294967295", "9223372036854775807", "2147483648"}) {
    const std::string storage = "set k 0 0 " + std::string(length) + "\r\n";
    EXPECT_EQ(scan(storage).refusal.answer, "CLIENT_ERROR bad command line format\r\n") << length;
    const std::string meta = "ms k " + std::string(length) + "\r\n";
    EXPECT_EQ(scan(meta).refusal.answer, "CLIENT_ERROR bad command line format\r\n") << length;
    EXPECT_EQ(scan(meta).refusal.skip, 0U) << length;
  }
}

TEST(Command, LinesHaveALimit) {
  const std::string blanks(kMaxLine, ' ');
  for (const std::string& line : {"mg " + std::string(kMaxLine, 'k'), "x" + blanks, blanks}) {
    for (const char* end : {"", "\r\n"}) {
      const Scan result = scan(line + end);
      EXPECT_EQ(result.scanned, Scanned::hopeless);
      EXPECT_EQ(result.refusal.answer, "CLIENT_ERROR line too long\r\n");
    }
  }
  EXPECT_EQ(scan("set" + std::string(kMaxLine - 4, ' ')).scanned, Scanned::more);
  EXPECT_EQ(scan("set" + std::string(kMaxLine - 4, ' ') + "\n").scanned, Scanned::refused);
  for (const std::string& verb : {"get"s, "gets"s, "gat 0"s, "  gats 0"s}) {
    EXPECT_EQ(scan(verb + blanks).scanned, Scanned::more);
    EXPECT_EQ(scan(verb + blanks + "k\n").scanned, Scanned::command);
    EXPECT_EQ(scan(verb + std::string(kMaxRetrievalLine, ' ')).scanned, Scanned::hopeless);
  }
}

TEST(Command, TheBinaryProtocolIsHopelessWithoutAWord) {
  const Scan result = scan("\x80");
  EXPECT_EQ(result.scanned, Scanned::hopeless);
  EXPECT_EQ(result.refusal.answer, "");
}

TEST(Command, LinesForServersHaveSingleBlanksAndAskForAnswers) {
  const struct {
    const char* line;
    const char* sent;
  } rows[] = {
      {"set  k 07 +1  5 noreply", "set k 7 1 5"},
      {"set k 4294967296 -1 5 more", "set k 0 -1 5"},
      {"cas k 1 2 3 4 noreply", "cas k 1 2 3 4"},
      {"delete k 0 noreply", "delete k"},
      {"incr k 18446744073709551615 noreply", "incr k 18446744073709551615"},
      {"decr k 1", "decr k 1"},
      {"touch k -1 noreply", "touch k -1"},
      {"mg k  q v qq", nullptr},
      {"mg k  q v O1", "mg k v O1"},
      {"ms k 5 T0 q c", "ms k 5 T0 c"},
      {"md YWJj b quiet", "md YWJj b"},
      {"ma k q", "ma k"},
      {"me YWJj b k", "me YWJj b"},
      {"me k k b", "me k"},
      {"mn a b", "mn"},
      {"version now", "version"},
      {"stats settings", "stats settings"},
      {"verbosity 1 noreply", "verbosity 1"},
      {"flush_all 0 noreply", "flush_all"},
      {"flush_all 10", "flush_all 10"},
      {"quit now", "quit"},
  };
  for (const auto& row : rows) {
    const std::string line = std::string(row.line) + "\r\n";
    const Scan result = scan(line);
    EXPECT_EQ(result.scanned == Scanned::command, row.sent != nullptr) << row.line;
    if (row.sent == nullptr) continue;
    std::string out = "before ";
    append_line(result.command, out);
    EXPECT_EQ(out, "before " + std::string(row.sent) + "\r\n");
  }
}

TEST(Command, NamesStandInTheOrderOfTheVerbs) {
  EXPECT_EQ(name_of(Verb::get), "get");
  EXPECT_EQ(name_of(Verb::remove), "delete");
  EXPECT_EQ(name_of(Verb::meta_get), "mg");
  EXPECT_EQ(name_of(Verb::meta_debug), "me");
  EXPECT_EQ(name_of(Verb::quit), "quit");
}

TEST(Command, TakesWordsOffAText) {
  EXPECT_EQ(words_of(""), std::vector<std::string>{});
  EXPECT_EQ(words_of("   "), std::vector<std::string>{});
  EXPECT_EQ(words_of("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(words_of("  a\t  bc "), (std::vector<std::string>{"a\t", "bc"}));
}

}  // namespace
}  // namespace clockwise::memcached
