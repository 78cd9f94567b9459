// Lines good and bad against what memcached answered to them: tests/golden/memcached/*.json. What
// was sent is read by scan_command(), the answers by scan_reply(), side by side.
#include "unit/memcached/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "memcached/command.h"
#include "memcached/reply.h"

namespace clockwise::memcached {
namespace {

using test::Case;
using test::Golden;
using test::golden;

// What incr, decr and ma say to another value.
constexpr std::string_view kNotANumber = "cannot increment or decrement non-numeric value";

bool one_of(ReplyKind kind, std::initializer_list<ReplyKind> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

// Whether a server may answer so to a command that it takes.
bool fits(Verb verb, ReplyKind kind) {
  using enum ReplyKind;
  switch (verb) {
    case Verb::remove:
      return one_of(kind, {deleted, not_found});
    case Verb::incr:
    case Verb::decr:
      return one_of(kind, {number, not_found});
    case Verb::touch:
      return one_of(kind, {touched, not_found});
    case Verb::meta_get:
      return one_of(kind, {value, meta_done, end});
    case Verb::meta_set:
    case Verb::meta_delete:
      return one_of(kind, {meta_done, meta_not_stored, meta_exists, meta_not_found});
    case Verb::meta_arithmetic:
      return one_of(kind, {value, meta_done, meta_not_found, meta_exists});
    case Verb::meta_debug:
      return one_of(kind, {ReplyKind::meta_debug, end});
    case Verb::meta_noop:
      return kind == ReplyKind::meta_noop;
    case Verb::version:
      return kind == ReplyKind::version;
    case Verb::stats:
      return one_of(kind, {reset, error});
    case Verb::verbosity:
    case Verb::flush_all:
      return kind == ok;
    default:
      return is_storage(verb) && one_of(kind, {stored, not_stored, exists, not_found});
  }
}

// A client and a server, seen from between them.
class Exchange {
 public:
  Exchange(const Case& one, std::uint32_t largest)
      : sent_(one.sent), answered_(one.answered), largest_(largest) {}

  // Reads both to their end; empty: they fit together, else what does not.
  std::string follow() {
    std::string wrong;
    while (wrong.empty() && !sent_.empty() && !over_) wrong = step();
    if (wrong.empty() && !answered_.empty()) wrong = "more is answered: " + std::string(answered_);
    return wrong;
  }

  bool deleted = false;    // a refusal deleted a key
  bool refused = false;    // there was one
  std::size_t values = 0;  // that were answered
  std::size_t gets = 0;

 private:
  std::string step() {
    Command command;
    Refusal refusal;
    std::size_t scanned = 0;
    switch (scan_command(sent_, largest_, scanned, command, refusal)) {
      case Scanned::more:
        over_ = true;
        return {};
      case Scanned::hopeless:
        return "hopeless";
      case Scanned::refused:
        refused = true;
        deleted = deleted || refusal.deletes_key;
        drop(command.line_size);
        // A server answers once it has thrown the whole block away.
        over_ = refusal.skip > sent_.size();
        if (over_) return {};
        drop(refusal.skip);
        return refusal.silent ? "" : expect(refusal.answer);
      case Scanned::command:
        break;
    }
    drop(command.line_size);
    return answer_to(command);
  }

  std::string answer_to(const Command& command) {
    over_ = command.verb == Verb::quit;
    if (over_) return {};
    if (is_storage(command.verb)) {
      const std::size_t size = std::size_t{command.length} + 2;
      const std::string_view block = sent_.substr(0, size);
      drop(size);
      over_ = block.size() < size;
      if (over_) return {};
      if (!block.ends_with("\r\n")) {
        return command.noreply ? "" : expect("CLIENT_ERROR bad data chunk\r\n");
      }
    }
    if (command.verb == Verb::set && command.key == "k") flags_ = command.flags;
    if (command.noreply) return {};
    return is_retrieval(command.verb) ? read_values(command) : read_answer(command);
  }

  std::string read_values(const Command& command) {
    ++gets;
    const bool unique = command.verb == Verb::gets || command.verb == Verb::gats;
    std::string_view keys = command.rest;
    std::string_view key = command.key;
    for (;;) {
      Reply reply;
      if (!read_reply(reply)) return "no answer in: " + std::string(answered_);
      if (reply.kind == ReplyKind::end) return {};
      while (!key.empty() && key != reply.key) key = next_word(keys);
      if (key.empty()) return "another value: " + std::string(reply.line);
      key = next_word(keys);
      if (reply.has_unique != unique) return "unique: " + std::string(reply.line);
      if (reply.key == "k" && reply.flags != flags_) return "flags: " + std::string(reply.line);
    }
  }

  std::string read_answer(const Command& command) {
    const std::string_view before = answered_;
    Reply reply;
    if (!read_reply(reply)) return "no answer in: " + std::string(answered_);
    // Nothing was said to the quiet one, this is the answer to what came after it.
    if (command.quiet && reply.kind == ReplyKind::meta_noop) {
      answered_ = before;
      return {};
    }
    const bool fine = fits(command.verb, reply.kind) || reply.rest == kNotANumber;
    return fine ? "" : "not refused: " + std::string(reply.line);
  }

  bool read_reply(Reply& reply) {
    if (answered_.empty()) return false;
    std::size_t scanned = 0;
    if (scan_reply(answered_, largest_, scanned, reply) != ReplyScan::complete) return false;
    answered_.remove_prefix(reply.size);
    if (reply.kind != ReplyKind::value) return true;
    ++values;
    const std::size_t size = std::size_t{reply.length} + 2;
    if (answered_.size() < size || answered_.substr(size - 2, 2) != "\r\n") return false;
    answered_.remove_prefix(size);
    return true;
  }

  std::string expect(std::string_view answer) {
    if (!answered_.starts_with(answer)) {
      return "refused with " + std::string(answer) + "but answered " + std::string(answered_);
    }
    answered_.remove_prefix(answer.size());
    return {};
  }

  void drop(std::uint64_t size) {
    sent_.remove_prefix(static_cast<std::size_t>(std::min<std::uint64_t>(size, sent_.size())));
  }

  std::string_view sent_;
  std::string_view answered_;
  std::uint32_t largest_;
  std::uint32_t flags_ = 0;  // of the value that was set last
  bool over_ = false;
};

std::string start_of(const Case& one) { return testing::PrintToString(one.sent.substr(0, 120)); }

class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, TheServerAgrees) {
  const Golden file = golden(GetParam());
  for (const Case& one : file.cases) {
    EXPECT_EQ(Exchange(one, file.largest_value).follow(), "") << start_of(one);
  }
}

INSTANTIATE_TEST_SUITE_P(Memcached, Recorded,
                         testing::Values("storage", "retrieval", "changes", "meta", "stored_meta",
                                         "control", "large"));

TEST(Recorded, AValueTooLargeTakesTheOldOneWithItWhereTheRefusalSaysSo) {
  const Golden file = golden("large");
  std::size_t deleting = 0;
  for (const Case& one : file.cases) {
    Exchange exchange(one, file.largest_value);
    EXPECT_EQ(exchange.follow(), "") << start_of(one);
    if (!exchange.refused || exchange.gets == 0) continue;
    EXPECT_EQ(exchange.values == 0, exchange.deleted) << start_of(one);
    if (exchange.deleted) ++deleting;
  }
  EXPECT_GT(deleting, 0U);
}

// The server takes these. We do not: lengths that it would cut to 32 bits, so that a block of
// another size than the client sends is read, and newer ones refuse; commands that are no matter of
// a pool; the binary protocol, which it tells apart at the first octet of a connection alone; and
// lines longer than our limit.
TEST(Recorded, WhereWeAreStricter) {
  const Golden file = golden("stricter");
  EXPECT_FALSE(file.cases.empty());
  for (const Case& one : file.cases) {
    Command command;
    Refusal refusal;
    std::size_t scanned = 0;
    const Scanned result = scan_command(one.sent, file.largest_value, scanned, command, refusal);
    EXPECT_TRUE(result == Scanned::refused || result == Scanned::hopeless) << start_of(one);
    EXPECT_NE(Exchange(one, file.largest_value).follow(), "") << start_of(one);
  }
}

}  // namespace
}  // namespace clockwise::memcached
