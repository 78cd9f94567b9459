#include "upstream/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <random>

#include "support/pools.h"
#include "upstream/json.h"
#include "upstream/placed.h"

namespace clockwise::upstream {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A change of random servers, with its real account.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  RemapPtr remap(std::uint64_t id) {
    const test::BuiltPool before(list()), after(list());
    Remap remap;
    remap.id = id;
    remap.time = WallClock::time_point(std::chrono::milliseconds(random_()));
    remap.cause = below(2) == 0 ? "reload" : "api";
    remap.trigger = static_cast<Trigger>(below(5));
    remap.forced = below(2) == 0;
    remap.report = plan(before, after);
    remap.before = to_text(placed(before.pool));
    remap.counted_before = random_();
    return std::make_shared<const Remap>(std::move(remap));
  }
  History history(std::size_t count) {
    History history;
    for (std::size_t i = 0; i < count; ++i) history.push_back(remap(200 - i));
    return history;
  }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  config::Pool list() {
    config::Pool pool = test::pool({});
    pool.ring.scheme.points = 20;
    for (char name = 'a'; name < 'i'; ++name)
      if (name == 'a' || below(3) > 0)
        pool.servers.push_back(test::server(std::string(1, name), 0.25 * (1 + below(9)),
                                            static_cast<config::ServerState>(below(3))));
    pool.servers.front().state = config::ServerState::active;
    return pool;
  }

  std::mt19937 random_;
};

std::string shown(const Remap& remap) {
  return to_text(to_json(remap, remap.time.time_since_epoch() / 1ms)) + remap.before;
}

TEST(HistoryTextLaw, WhatIsReadIsWhatWasWritten) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Draw draw(seed);
    const History history = draw.history(seed % 7);
    const auto saved = parse_history(history_text(history, 200 + seed));
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(saved->last_id, 200 + seed);
    ASSERT_EQ(saved->remaps.size(), history.size());
    for (std::size_t i = 0; i < history.size(); ++i)
      EXPECT_EQ(shown(saved->remaps[i]), shown(*history[i])) << seed;
  }
}

TEST(HistoryTextLaw, NoPrefixOfTheFileIsTakenForAHistory) {
  const std::string text = history_text(Draw(1).history(2), 200);
  for (std::size_t size = 0; size + 2 < text.size(); size += 13)
    EXPECT_FALSE(parse_history(std::string_view(text).substr(0, size))) << size;
}

struct Damage {
  std::string name, from, to, says;
};

TEST(HistoryText, SaysWhatIsWrongWithIt) {
  const std::string good = history_text(Draw(2).history(2), 200);
  const std::vector<Damage> rows{
      {"of another program", "clockwise remaps", "something else", "not a history"},
      {"of a later version", "\"version\": 1", "\"version\": 2", "version"},
      {"ids above the last", "\"last_id\": 200", "\"last_id\": 199", "out of order"},
      {"doubled id", "\"id\": 199", "\"id\": 200", "out of order"},
      {"a number that is text", "\"moved_ratio\": ", "\"moved_ratio\": \"x\", \"\": ", ""},
      {"a member that is missing", "\"forced\"", "\"enforced\"", ""},
      {"a move of no server", "\"from\": \"", "\"from\": \"x", "no server"},
      {"no number", "\"moved_ratio\": \"", "\"moved_ratio\": \"nan\", \"\": \"", "none at all"},
      {"infinity", "\"moved_ratio\": \"", "\"moved_ratio\": \"inf\", \"\": \"", "none at all"},
      {"infinity of JSON", "\"moved_ratio\": ", "\"moved_ratio\": 1e999, \"\": ", ""},
      {"less than nothing", "\"minimum_ratio\": ", "\"minimum_ratio\": -0.5, \"\": ", "negative"},
      {"more than all", "\"lost_ratio\": ", "\"lost_ratio\": 1.5, \"\": ", "above 1"},
      {"a weight below 0", "\"weight_before\": ", "\"weight_before\": -1, \"\": ", "negative"},
      {"a move of no size", "\"ratio\": ", "\"ratio\": \"-nan\", \"\": ", "none at all"},
      {"a time before the clock", "\"time\": ", "\"time\": -1, \"\": ", "time"},
      {"a time beyond the clock", "\"time\": ", "\"time\": 9223372036854775807, \"\": ", "time"},
      {"no id is left", "\"last_id\": 200", "\"last_id\": 18446744073709551615", "last id"},
      {"a server that stands twice", "\"name\": \"", "\"name\": \"z", "out of order"},
      {"no known trigger", "\"trigger\": \"", "\"trigger\": \"x", "trigger"},
  };
  for (const Damage& row : rows) {
    std::string text = good;
    const std::size_t at = text.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.name;
    text.replace(at, row.from.size(), row.to);
    const auto read = parse_history(text);
    ASSERT_FALSE(read) << row.name;
    EXPECT_THAT(read.error().message, HasSubstr(row.says)) << row.name;
  }
}

TEST(HistoryText, NoMoreThanAHundredAreRead) {
  Draw draw(3);
  const History history = draw.history(kHistory + 5);
  const auto saved = parse_history(history_text(history, 200));
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->remaps.size(), kHistory);
  EXPECT_EQ(saved->remaps.front().id, 200U);
}

RemapPtr sized(std::uint64_t id, std::size_t moves, std::size_t servers) {
  Remap remap;
  remap.id = id;
  remap.report.moves.resize(moves);
  remap.report.servers.resize(servers);
  remap.before = "{}";
  return std::make_shared<const Remap>(std::move(remap));
}

TEST(HistoryLimits, TheOldestLoseTheirMovesFirst) {
  const History history{sized(3, 40, 1), sized(2, 40, 1), sized(1, 40, 1)};
  EXPECT_TRUE(above({.moves = 120, .servers = 3}, history).empty());
  const auto replaced = above({.moves = 100, .servers = 3}, history);
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_EQ(replaced[0].first, history[2]);
  const Remap& thinner = *replaced[0].second;
  EXPECT_TRUE(thinner.report.moves.empty());
  EXPECT_EQ(thinner.moves_omitted, 40U);
  EXPECT_EQ(thinner.report.servers.size(), 1U);
  EXPECT_EQ(thinner.before, "{}");
  EXPECT_EQ(to_json(thinner, nullptr).at("moves_omitted").as_uint64(), 40U);
  EXPECT_FALSE(to_json(*history[0], nullptr).contains("moves_omitted"));
}

TEST(HistoryLimits, TheNewestKeepsItsServersWhateverTheirNumber) {
  const History history{sized(2, 500, 500), sized(1, 5, 5)};
  const auto replaced = above({.moves = 100, .servers = 100}, history);
  ASSERT_EQ(replaced.size(), 2U);
  const Remap& newest = *replaced[0].second;
  EXPECT_EQ(newest.report.servers.size(), 500U);
  EXPECT_EQ(newest.moves_omitted, 500U);
  EXPECT_EQ(newest.before, "{}");
  const Remap& oldest = *replaced[1].second;
  EXPECT_EQ(oldest.servers_omitted, 5U);
  EXPECT_TRUE(oldest.before.empty());
}

TEST(HistoryLimits, WhatWasOmittedStaysOmittedInTheFile) {
  const History history{sized(2, 0, 0), sized(1, kInFile.moves + 1, 1)};
  const auto saved = parse_history(history_text(history, 2));
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(saved->remaps[1].moves_omitted, kInFile.moves + 1);
  EXPECT_TRUE(saved->remaps[1].report.moves.empty());
}

}  // namespace
}  // namespace clockwise::upstream
