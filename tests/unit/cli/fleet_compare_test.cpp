#include "cli/fleet_compare.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "cli/fleet_text.h"

namespace clockwise::cli {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FleetServer server(const std::string& name, double weight = 1,
                   const std::string& state = "active") {
  return {name, weight, state, name, 0, {}};
}

FleetPool pool(const std::string& digest, std::vector<FleetServer> servers) {
  return {"pages", digest, {{"scheme", "clockwise"}, {"points", "1024"}}, std::move(servers)};
}

FleetProxy proxy(const std::string& url, std::vector<FleetPool> pools) {
  return {url, {}, std::move(pools)};
}

// "pool/server: text @ urls"; "-" for the ring.
std::vector<std::string> lines(const std::vector<FleetProxy>& proxies) {
  std::vector<std::string> lines;
  for (const Difference& difference : differences(camps_of(proxies)))
    for (const Finding& finding : difference.findings) {
      std::string line = difference.pool + "/" + difference.server.value_or("-") + ": ";
      line += finding.text + " @";
      for (const std::string& url : finding.urls) line += " " + url;
      lines.push_back(std::move(line));
    }
  return lines;
}

// Two proxies have `usual`, a third has `other`.
std::vector<std::string> lines(const FleetPool& usual, const FleetPool& other) {
  return lines({proxy("u1", {usual}), proxy("u2", {other}), proxy("u3", {usual})});
}

TEST(Fleet, EqualDigestsAgreeWhateverElseIsSaid) {
  const FleetPool one = pool("d", {server("a"), server("b")});
  const FleetPool other = pool("d", {server("b"), server("a")});
  EXPECT_THAT(lines(one, other), IsEmpty());
  EXPECT_THAT(lines({proxy("u1", {one})}), IsEmpty());
  EXPECT_THAT(lines(std::vector<FleetProxy>{}), IsEmpty());
}

TEST(Fleet, NamesTheServerThatDiffersAndHow) {
  const FleetPool usual = pool("d", {server("a"), server("b")});
  struct Row {
    const char* name;
    std::vector<FleetServer> servers;
    std::vector<std::string> expected;
  };
  FleetServer labelled = server("b"), numbered = server("b");
  labelled.label = "10.0.0.2:80";
  numbered.id = 7;
  const Row rows[]{
      {"weight", {server("a"), server("b", 2.5)}, {"pages/b: weight 2.5 instead of 1 @ u2"}},
      {"missing", {server("a")}, {"pages/b: missing @ u2"}},
      {"surplus",
       {server("a"), server("b"), server("c", 3)},
       {"pages/c: only there, weight 3 @ u2"}},
      {"draining",
       {server("a"), server("b", 1, "draining")},
       {"pages/b: state draining instead of active @ u2"}},
      {"label", {server("a"), labelled}, {"pages/b: label 10.0.0.2:80 instead of b @ u2"}},
      {"id", {server("a"), numbered}, {"pages/b: id 7 instead of 0 @ u2"}},
      {"two at once",
       {server("a", 4)},
       {"pages/a: weight 4 instead of 1 @ u2", "pages/b: missing @ u2"}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(lines(usual, pool("e", row.servers)), row.expected) << row.name;
}

TEST(Fleet, DrainingAndDownAreTheSameForARing) {
  const FleetPool usual = pool("d", {server("a"), server("b", 1, "down")});
  EXPECT_THAT(lines(usual, pool("e", {server("a", 2), server("b", 1, "draining")})),
              ElementsAre("pages/a: weight 2 instead of 1 @ u2"));
}

TEST(Fleet, NamesTheSettingThatDiffers) {
  const FleetPool usual = pool("d", {server("a")});
  FleetPool fewer = pool("e", {server("a")});
  fewer.ring["points"] = "512";
  EXPECT_THAT(lines(usual, fewer), ElementsAre("pages/-: points 512 instead of 1024 @ u2"));

  FleetPool peer = pool("e", {server("a")});
  peer.ring = {{"scheme", "ketama"}, {"key_hash", "md5"}};
  EXPECT_THAT(lines(usual, peer), ElementsAre("pages/-: scheme ketama instead of clockwise @ u2"));
}

TEST(Fleet, NamesTheZoneThatDiffersWhereAKeyHasSeveralOwners) {
  FleetPool usual = pool("d", {server("a"), server("b")});
  FleetPool zoned = pool("e", {server("a"), server("b", 2)});
  zoned.servers[1].zone = "west";
  EXPECT_THAT(lines(usual, zoned), ElementsAre("pages/b: weight 2 instead of 1 @ u2"));
  usual.ring["replicas"] = zoned.ring["replicas"] = "2";
  EXPECT_THAT(lines(usual, zoned), ElementsAre("pages/b: weight 2 instead of 1 @ u2",
                                               "pages/b: zone west instead of none @ u2"));
}

TEST(Fleet, AnOrderThatCountsIsTold) {
  const FleetPool usual = pool("d", {server("a"), server("b")});
  EXPECT_THAT(lines(usual, pool("e", {server("b"), server("a")})),
              ElementsAre(HasSubstr("pages/-: the servers are listed in another order")));
}

TEST(Fleet, ProxiesThatTellNoSettingsAreComparedByWhatTheyTell) {
  FleetPool old = pool("d", {server("a"), server("b")});
  old.ring.clear();
  FleetPool other = old;
  other.digest = "e";
  EXPECT_THAT(lines(old, other), ElementsAre(HasSubstr("does not tell @ u2")));
  other.servers[0].weight = 2;
  EXPECT_THAT(lines(old, other), ElementsAre("pages/a: weight 2 instead of 1 @ u2"));
}

TEST(Fleet, APoolThatOnlySomeHaveIsADifference) {
  const FleetPool both = pool("d", {server("a")});
  FleetPool extra = both;
  extra.name = "images";
  EXPECT_THAT(lines({proxy("u1", {both, extra}), proxy("u2", {both}), proxy("u3", {both, extra})}),
              ElementsAre("images/-: the pool is missing @ u2"));
  EXPECT_THAT(lines({proxy("u1", {both, extra}), proxy("u2", {both}), proxy("u3", {both})}),
              ElementsAre("images/-: the others lack this pool @ u1"));
}

TEST(Fleet, TheMeasureIsTheRingOfMostAndOfTheFirstOnATie) {
  const FleetPool one = pool("d", {server("a")}), two = pool("e", {server("a", 2)}),
                  three = pool("f", {server("a", 3)});
  EXPECT_THAT(lines({proxy("u1", {two}), proxy("u2", {one}), proxy("u3", {one})}),
              ElementsAre("pages/a: weight 2 instead of 1 @ u1"));
  EXPECT_THAT(lines({proxy("u1", {two}), proxy("u2", {one})}),
              ElementsAre("pages/a: weight 1 instead of 2 @ u2"));
  EXPECT_THAT(
      lines({proxy("u1", {one}), proxy("u2", {two}), proxy("u3", {three}), proxy("u4", {one}),
             proxy("u5", {two})}),
      ElementsAre("pages/a: weight 2 instead of 1 @ u2 u5", "pages/a: weight 3 instead of 1 @ u3"));
}

TEST(Fleet, AProxyWithoutAnswerTakesNoPart) {
  const FleetPool usual = pool("d", {server("a")});
  FleetProxy dead{"u2", "cannot reach it", {}};
  const FleetReport report = compare_fleet({proxy("u1", {usual}), dead, proxy("u3", {usual})});
  EXPECT_THAT(report.differences, IsEmpty());
  EXPECT_FALSE(report.complete());
  EXPECT_FALSE(report.agree());
  EXPECT_THAT(fleet_text(report), HasSubstr("pool pages: 2 of 2 agree\n"));
  EXPECT_EQ(to_json(report).at("proxies").at(1).at("error"), "cannot reach it");
}

TEST(Fleet, ReadsWhatTheApiAnswersAndWhatOlderProxiesLeaveOut) {
  const json::value now = json::parse(
      R"({"pools": [{"name": "pages", "digest": "d", "ring": {"scheme": "haproxy", "table": 3,
          "key_ignore": ["a", "b"]}, "servers": [
          {"name": "a", "weight": 0.5, "state": "down", "label": "x", "id": 4}]}]})");
  const FleetPool read = fleet_pools(now.get_object())->at(0);
  EXPECT_EQ(read.name + read.digest, "pagesd");
  EXPECT_EQ(read.ring.at("scheme"), "haproxy");
  EXPECT_EQ(read.ring.at("table"), "3");
  EXPECT_EQ(read.ring.at("key_ignore"), R"(["a", "b"])");
  EXPECT_EQ(read.servers[0].weight, 0.5);
  EXPECT_EQ(read.servers[0].state + read.servers[0].label, "downx");
  EXPECT_EQ(read.servers[0].id, 4U);

  const json::value old =
      json::parse(R"({"pools": [{"name": "pages", "digest": "d", "servers": [{"name": "a"}]}]})");
  const std::vector<FleetPool> pools = *fleet_pools(old.get_object());
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_THAT(pools[0].ring, IsEmpty());
  EXPECT_EQ(pools[0].servers[0].label, "a");
}

TEST(Fleet, TakesNothingElseForAProxy) {
  for (const char* answer :
       {R"({})", R"({"pools": 3})", R"({"pools": [5]})", R"({"pools": [{"name": "p"}]})",
        R"({"pools": [{"name": "p", "digest": 7}]})", R"({"pools": [{"digest": "d"}]})"})
    EXPECT_FALSE(fleet_pools(json::parse(answer).get_object())) << answer;
  EXPECT_TRUE(fleet_pools(json::parse(R"({"pools": []})").get_object())->empty());
}

TEST(FleetText, ShowsWhoIsOnWhichSide) {
  const FleetPool usual = pool("1111111111111111", {server("a")});
  const FleetReport report =
      compare_fleet({proxy("u1", {pool("2222222222222222", {server("a", 2)})}),
                     proxy("u2", {usual}), proxy("u3", {usual})});
  EXPECT_EQ(fleet_text(report),
            "pool pages: 2 rings, the most common at 2 of 3\n"
            "  1111111111111111  u2, u3\n"
            "  2222222222222222  u1\n"
            "  server a: weight 2 instead of 1, at u1\n");
  EXPECT_EQ(json::serialize(to_json(report).at("differences")),
            R"([{"pool":"pages","server":"a","urls":["u1"],"findings":[)"
            R"({"text":"weight 2 instead of 1","urls":["u1"]}]}])");
}

TEST(FleetText, LongListsAreCut) {
  std::vector<FleetServer> many;
  for (int i = 0; i < 30; ++i) many.push_back(server("s" + std::to_string(i)));
  const FleetPool usual = pool("d", {server("a")});
  many.push_back(server("a"));
  const FleetReport report =
      compare_fleet({proxy("u1", {usual}), proxy("u2", {usual}), proxy("u3", {pool("e", many)})});
  EXPECT_THAT(fleet_text(report), HasSubstr("  and 10 more; --json has them all\n"));
  EXPECT_EQ(to_json(report).at("differences").as_array().size(), 30U);
}

TEST(FleetText, OfProxiesWithoutPoolsSaysSo) {
  FleetProxy dead = proxy("u3", {});
  dead.error = "cannot reach the proxy at u3";
  EXPECT_EQ(fleet_text(compare_fleet({proxy("u1", {}), proxy("u2", {}), dead})),
            "no pools at 2 of 3 proxies: nothing to compare\n");
  EXPECT_EQ(fleet_text(compare_fleet({dead})), "");
}

}  // namespace
}  // namespace clockwise::cli
