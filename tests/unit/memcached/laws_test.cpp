// Laws of the scanners: on every line of tests/golden/memcached, and on lines made of their words.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "memcached/base64.h"
#include "memcached/command.h"
#include "unit/memcached/golden.h"
#include "unit/memcached/splits.h"

namespace clockwise::memcached {
namespace {

using test::in_pieces;
using test::summary;

using Texts = std::vector<std::string>;

constexpr std::uint32_t kLargest = 1'000'000;

std::string command_of(std::string_view octets, std::size_t& seen) {
  Command command;
  Refusal refusal;
  const Scanned scanned = scan_command(octets, kLargest, seen, command, refusal);
  return summary(scanned, command, refusal);
}

std::string reply_of(std::string_view octets, std::size_t& seen) {
  Reply reply;
  const ReplyScan scanned = scan_reply(octets, kLargest, seen, reply);
  return summary(scanned, reply);
}

std::size_t whole() { return std::string_view::npos / 2; }
std::size_t one() { return 1; }

// All that was sent, or answered.
Texts recorded(std::string test::Case::* side) {
  Texts all;
  for (const char* name : {"storage", "retrieval", "changes", "meta", "stored_meta", "control"}) {
    for (test::Case& one : test::golden(name).cases) all.push_back(std::move(one.*side));
  }
  return all;
}

TEST(CommandLaw, EveryCutOfARecordedLineGivesTheSame) {
  for (const std::string& sent : recorded(&test::Case::sent)) {
    ASSERT_EQ(in_pieces(sent, one, command_of), in_pieces(sent, whole, command_of)) << sent;
  }
}

// The verb decides how long a line may be, and here it stands across the limit.
TEST(CommandLaw, AVerbAtTheLimitIsTheSameInEveryCut) {
  for (const char* verb : {"get k\n", "gets k\n", "getx k\n", "set k 0 0 1\n"}) {
    for (std::size_t blanks = kMaxLine - 6; blanks <= kMaxLine; ++blanks) {
      const std::string line = std::string(blanks, ' ') + verb;
      ASSERT_EQ(in_pieces(line, one, command_of), in_pieces(line, whole, command_of))
          << verb << " behind " << blanks;
    }
  }
}

TEST(ReplyLaw, EveryCutOfARecordedAnswerGivesTheSame) {
  for (const std::string& answered : recorded(&test::Case::answered)) {
    if (answered.empty()) continue;
    ASSERT_EQ(in_pieces(answered, one, reply_of), in_pieces(answered, whole, reply_of)) << answered;
  }
}

// What a server has of the text behind the key: without what it passes over, and what we keep.
std::string sent_rest(const Command& command) {
  std::string text;
  for (std::string_view rest = command.rest; !rest.empty();) {
    const std::string_view word = next_word(rest);
    const bool kept = command.verb == Verb::verbosity ? word != "noreply"
                      : is_meta(command.verb)         ? !word.starts_with('q')
                                                      : true;
    if (!word.empty() && kept) text.append(text.empty() ? "" : " ").append(word);
  }
  switch (command.verb) {
    case Verb::meta_debug:
      return command.base64_key ? "b" : "";
    case Verb::flush_all:
      return command.exptime != 0 ? std::to_string(command.exptime) : "";
    case Verb::meta_noop:
    case Verb::version:
    case Verb::quit:
      return "";
    default:
      return text;
  }
}

std::string sent_summary(Command command, const std::string& line) {
  const std::string rest = sent_rest(command);
  command.rest = rest;
  command.line_size = static_cast<std::uint32_t>(line.size());
  command.noreply = false;
  command.quiet = false;
  return summary(command);
}

void check_round_trip(std::string_view octets) {
  Command command;
  Refusal refusal;
  std::size_t seen = 0;
  if (scan_command(octets, kLargest, seen, command, refusal) != Scanned::command) return;
  if (is_retrieval(command.verb)) return;
  std::string line;
  append_line(command, line);
  Command again;
  ASSERT_EQ(scan_command(line, kLargest, seen, again, refusal), Scanned::command) << line;
  ASSERT_EQ(summary(again), sent_summary(command, line)) << line;
  std::string twice;
  append_line(again, twice);
  ASSERT_EQ(twice, line);
}

TEST(CommandLaw, WhatAServerGetsIsTheSameCommand) {
  for (const std::string& sent : recorded(&test::Case::sent)) check_round_trip(sent);
}

const Texts kWords = {
    "get",
    "gets",
    "gat",
    "gats",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "delete",
    "incr",
    "decr",
    "touch",
    "mg",
    "ms",
    "md",
    "ma",
    "me",
    "mn",
    "quit",
    "version",
    "stats",
    "verbosity",
    "k",
    "flush_all",
    "noreply",
    "YWJj",
    "0",
    "1",
    "-1",
    "5",
    "1000001",
    "b",
    "q",
    "T30",
    "O1",
    "Tx",
    "4294967296",
    "key\t1",
    "\xc3\xa9",
    "2147483648",
    std::string(250, 'k'),
    std::string(251, 'k'),
};
const Texts kBlanks = {" ", " ", " ", "  ", "   ", "\t", std::string(1, '\0')};
const Texts kEnds = {"\r\n", "\r\n", "\n", " \r\n", "\r\r\n", ""};

std::string any_line() {
  std::string line = *rc::gen::elementOf(kWords);
  const int words = *rc::gen::inRange(0, 8);
  for (int i = 0; i < words; ++i) {
    line += *rc::gen::elementOf(kBlanks) + *rc::gen::elementOf(kWords);
  }
  return line + *rc::gen::elementOf(kEnds);
}

RC_GTEST_PROP(CommandLaw, CutsDoNotMatter, ()) {
  const std::string sent = any_line() + any_line();
  const auto next = [] { return *rc::gen::inRange<std::size_t>(1, 20); };
  RC_ASSERT(in_pieces(sent, next, command_of) == in_pieces(sent, whole, command_of));
}

RC_GTEST_PROP(CommandLaw, AnyLineThatIsTakenIsSentAsTheSameCommand, ()) {
  check_round_trip(any_line());
}

// A server never waits for more than a line, and is never told to skip more than the client said.
RC_GTEST_PROP(CommandLaw, EveryLineHasAnEndAndAnAnswer, ()) {
  const std::string sent = any_line();
  Command command;
  Refusal refusal;
  std::size_t seen = 0;
  const Scanned scanned = scan_command(sent, kLargest, seen, command, refusal);
  RC_ASSERT((scanned == Scanned::more) == (sent.back() != '\n'));
  if (scanned == Scanned::more) return;
  RC_ASSERT(command.line_size == sent.size());
  RC_ASSERT((scanned == Scanned::refused) == !refusal.answer.empty());
  RC_ASSERT(refusal.answer.empty() || refusal.answer.ends_with("\r\n"));
  RC_ASSERT(scanned == Scanned::refused || refusal.skip == 0U);
}

RC_GTEST_PROP(ReplyLaw, CutsDoNotMatter, ()) {
  static const Texts kReplies = recorded(&test::Case::answered);
  const std::string answered = *rc::gen::elementOf(kReplies) + *rc::gen::arbitrary<std::string>();
  RC_PRE(!answered.empty());
  const auto next = [] { return *rc::gen::inRange<std::size_t>(1, 20); };
  RC_ASSERT(in_pieces(answered, next, reply_of) == in_pieces(answered, whole, reply_of));
}

// One octet of a good line more, less or another: good or bad, but never more than there is.
RC_GTEST_PROP(ReplyLaw, NothingIsReadOutside, ()) {
  static const Texts kReplies = recorded(&test::Case::answered);
  std::string answered = *rc::gen::elementOf(kReplies);
  RC_PRE(!answered.empty());
  const auto at = *rc::gen::inRange<std::size_t>(0, answered.size());
  answered[at] = *rc::gen::arbitrary<char>();
  Reply reply;
  std::size_t seen = 0;
  if (scan_reply(answered, kLargest, seen, reply) != ReplyScan::complete) return;
  RC_ASSERT(reply.size <= answered.size());
  RC_ASSERT(reply.size == reply.line.size() + 2);
  RC_ASSERT(reply.length <= kLargest);
}

RC_GTEST_PROP(WordsLaw, TogetherTheyAreTheText, (const std::vector<std::string>& words)) {
  std::string text;
  Texts expected;
  for (std::string word : words) {
    std::erase(word, ' ');
    text += std::string(*rc::gen::inRange<std::size_t>(1, 4), ' ') + word;
    if (!word.empty()) expected.push_back(word);
  }
  Texts taken;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = next_word(rest);
    if (!word.empty()) taken.emplace_back(word);
  }
  RC_ASSERT(taken == expected);
}

TEST(WordsLaw, ALongLineCostsLinearTime) {
  const std::string line = "get" + std::string(1'000'000, ' ') + "k";
  std::size_t seen = 0;
  for (std::size_t size = 1; size < line.size(); ++size) {
    ASSERT_EQ(command_of({line.data(), size}, seen), "more");
  }
}

// RFC 4648, section 10; then what is lenient.
RC_GTEST_PROP(Base64, WhatWasEncodedIsDecoded, (const std::string& octets)) {
  std::string text;
  append_base64(octets, text);
  RC_ASSERT(text.size() == (octets.size() + 2) / 3 * 4);
  std::string decoded(text.size(), 0);
  decoded.resize(decode_base64(text, decoded.data()));
  RC_ASSERT(decoded == octets);
}

TEST(Deleting, AKeyThatCannotStandInALineIsDeletedByItsBase64) {
  std::string line;
  EXPECT_FALSE(append_delete("plain\xff", line));
  EXPECT_EQ(line, "delete plain\xff\r\n");
  line.clear();
  EXPECT_TRUE(append_delete("a\r\nflush_all", line));
  EXPECT_EQ(line, "md YQ0KZmx1c2hfYWxs b\r\n");
}

TEST(Base64, DecodesAsTheServerDoes) {
  const struct {
    const char* text;
    const char* decoded;
  } rows[] = {
      {"Zg==", "f"},         {"Zm8=", "fo"},         {"Zm9v", "foo"},  {"Zm9vYg==", "foob"},
      {"Zm9vYmE=", "fooba"}, {"Zm9vYmFy", "foobar"}, {"Zm9v!", "foo"}, {"Z-m9_v", "foo"},
      {"Zm9=", "fo"},        {"Zm8=Zm9v", "fo"},     {"Zm8=Zm9", ""},  {"", ""},
      {"Zm9", ""},           {"Z===", ""},           {"====", ""},     {"!!!!", ""},
  };
  for (const auto& row : rows) {
    char out[64];
    EXPECT_EQ(std::string_view(out, decode_base64(row.text, out)), row.decoded) << row.text;
  }
}

}  // namespace
}  // namespace clockwise::memcached
