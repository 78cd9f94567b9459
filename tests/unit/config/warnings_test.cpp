// What is valid, but hardly meant: each warning with its place and its figure.
#include "config/warnings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/configs.h"

namespace clockwise::config {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::string config_of(const std::string& servers, const std::string& ring) {
  return "listeners: [{name: web, address: 'h:80', pool: p}]\npools:\n  p:\n    ring: {" + ring +
         "}\n    servers: [" + servers + "]\n";
}

std::vector<std::string> warnings_of(const std::string& servers, const std::string& ring = "") {
  std::vector<std::string> out;
  for (const Problem& warning : test::loaded(config_of(servers, ring)).warnings)
    out.push_back(warning.headline());
  return out;
}

// Servers with labels as a peer would hash them: `weights` in turn.
std::string servers_of(std::size_t count, const std::vector<double>& weights = {1}) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += fmt::format("{}{{name: s{}, address: 'h{}:1', label: '10.0.{}.{}:80', weight: {}}}",
                       i == 0 ? "" : ", ", i, i, i / 250, i % 250, weights[i % weights.size()]);
  return out;
}

TEST(Warnings, TellWhatIsHardlyMeant) {
  EXPECT_THAT(
      warnings_of("{name: '10.0.0.1:80', address: 'h:1'}"),
      ElementsAre(StartsWith("main.yaml:5:22: pools.p.servers[0].name: \"10.0.0.1:80\" is an "
                             "address, not a name")));
  EXPECT_THAT(
      warnings_of("{name: a, address: 'h:1'}, {name: b, address: 'h:1'}"),
      ElementsAre(HasSubstr("servers[1].address: \"h:1\" is also the address of the server")));
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1', weight: 3}, {name: b, address: 'h:2'}, "
                          "{name: c, address: 'h:3'}"),
              ElementsAre(HasSubstr("servers[0].weight: \"a\" owns 60 % of the keys")));
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1', state: down}"),
              ElementsAre(HasSubstr("no server is active")));
}

TEST(Warnings, KeysThatDoNotWhatTheySeemToDo) {
  const std::string server = "{name: a, address: 'h:1'}";
  EXPECT_THAT(warnings_of(server, "key: fixed"),
              ElementsAre("main.yaml:4:17: pools.p.ring.key: \"fixed\" is the same for every "
                          "request: one server would get them all"));
  EXPECT_THAT(warnings_of(server, "key: '{path}', key_ignore: [sid]"),
              ElementsAre("main.yaml:4:39: pools.p.ring.key_ignore: has no effect: the key "
                          "\"{path}\" has no {uri:normalized}"));
  EXPECT_THAT(warnings_of(server, "key_ignore: [sid], key: 'x{uri:normalized}'"), IsEmpty());
}

TEST(Warnings, CachesThatGiveOnePageForAnother) {
  const auto warned = [](const std::string& cache) {
    std::vector<std::string> out;
    for (const Problem& warning :
         test::loaded("listeners: [{name: web, address: 'h:80', pool: p}]\n"
                      "pools: {p: {servers: [{name: a, address: 'h:1'}], cache: c}}\n"
                      "caches: {c: {" +
                      cache + "}}\n")
             .warnings)
      out.push_back(warning.headline());
    return out;
  };
  EXPECT_THAT(warned(""), IsEmpty());
  EXPECT_THAT(warned("key: '{header:HOST}{path:decoded}'"), IsEmpty());
  EXPECT_THAT(warned("key: '{uri}'"),
              ElementsAre("main.yaml:3:19: caches.c.key: \"{uri}\" has no {host}: the page of one "
                          "host would be given for that of another"));
  EXPECT_THAT(warned("key: '{host}'"),
              ElementsAre("main.yaml:3:19: caches.c.key: \"{host}\" has neither {uri} nor {path}: "
                          "different pages would have one answer"));
  EXPECT_THAT(warned("key_ignore: [sid]"), ElementsAre(HasSubstr("key_ignore: has no effect")));
}

TEST(Warnings, ACacheThatNoPoolUses) {
  const Loaded loaded = test::loaded(std::string(test::kSmall) + "caches: {c: {}}\n");
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_EQ(loaded.warnings[0].headline(),
            "main.yaml:7:10: caches.c: is used by no pool and no route");
}

TEST(Warnings, ARouteThatNoRequestReaches) {
  const auto warned = [](const std::string& first, const std::string& second) {
    const Loaded loaded = test::loaded(
        "listeners:\n  - name: web\n    address: 'h:80'\n    pool: p\n    routes:\n"
        "      - {pool: p, match: {" +
        first + "}}\n      - {pool: p, match: {" + second +
        "}}\npools: {p: {servers: [{name: a, address: 'h:1'}]}}\n");
    for (const Problem& warning : loaded.warnings)
      EXPECT_EQ(warning.headline(),
                "main.yaml:7:9: listeners[0].routes[1]: is never reached: all of it goes by the "
                "route on line 6");
    return !loaded.warnings.empty();
  };
  EXPECT_TRUE(warned("host: a", "host: A"));
  EXPECT_TRUE(warned("host: a", "host: a, path_prefix: /x"));
  EXPECT_TRUE(warned("path_prefix: /x", "host: a, path_prefix: /xy"));
  EXPECT_TRUE(warned("host: '*.a'", "host: b.a"));
  EXPECT_TRUE(warned("host: '*.a'", "host: '*.b.a'"));
  EXPECT_FALSE(warned("host: '*.a'", "host: a"));
  EXPECT_FALSE(warned("host: b.a", "host: '*.a'"));
  EXPECT_FALSE(warned("host: '*.b.a'", "host: '*.a'"));
  EXPECT_FALSE(warned("host: a, path_prefix: /x", "host: a"));
  EXPECT_FALSE(warned("host: a", "path_prefix: /x"));
}

TEST(Warnings, ARouteThatNoKeyReaches) {
  const auto warned = [](const std::string& first, const std::string& second) {
    return !test::loaded(
                "listeners: [{name: mc, address: 'h:80', protocol: memcached, pool: p, routes: "
                "[{pool: p, match: {key_prefix: '" +
                first + "'}}, {pool: p, match: {key_prefix: '" + second +
                "'}}]}]\npools: {p: {protocol: memcached, servers: [{name: 'h:1', address: "
                "'h:1'}]}}\n")
                .warnings.empty();
  };
  EXPECT_TRUE(warned("a", "a"));
  EXPECT_TRUE(warned("a", "ab"));
  EXPECT_FALSE(warned("ab", "a"));
  EXPECT_FALSE(warned("ab", "ac"));
}

TEST(Warnings, ACacheThatOnlyARouteUsesIsUsed) {
  EXPECT_THAT(test::loaded("listeners: [{name: web, address: 'h:80', pool: p, routes: "
                           "[{match: {host: a}, pool: p, cache: c}]}]\n"
                           "pools: {p: {servers: [{name: a, address: 'h:1'}]}}\ncaches: {c: {}}\n")
                  .warnings,
              IsEmpty());
}

TEST(Warnings, AreNotLookedForInABadConfiguration) {
  const std::string good = config_of("{name: '10.0.0.1:80', address: 'h:1'}", "");
  EXPECT_EQ(test::loaded(good).warnings.size(), 1U);
  EXPECT_THAT(test::problems_of(good + "workers: 0\n"), ElementsAre(HasSubstr("workers")));
}

TEST(Warnings, AreLeftOutWhereNobodyWantsThem) {
  const test::Files files = {{"main.yaml", config_of("{name: '10.0.0.1:80', address: 'h:1'}", "")}};
  const LoadResult result =
      load("main.yaml", test::reader(files), test::environment({}), Warnings::unwanted);
  EXPECT_THAT(std::get<Loaded>(result).warnings, IsEmpty());
}

TEST(Warnings, OfAnUpstreamFileHaveItsPlaces) {
  const Loaded loaded = test::loaded(
      {{"main.yaml",
        "listeners: [{name: web, address: 'h:80', pool: p}]\n"
        "pools: {p: {ring: {scheme: envoy}, servers_from: {file: up.yaml}}}\n"},
       {"up.yaml", "servers: [{name: a, address: 'h:1'}, {name: b, address: 'h:2'}]\n"}},
      "main.yaml");
  std::vector<std::string> warnings;
  for (const Problem& warning : loaded.warnings) warnings.push_back(warning.headline());
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(StartsWith("main.yaml:2:28: pools.p.ring.scheme: "),
                                HasSubstr("needlessly")),
                          StartsWith("up.yaml:1:18: servers[0].name: the ring hashes the name")));
}

std::vector<std::string> warnings_of_memcached(const std::string& pool,
                                               const std::string& servers = servers_of(3)) {
  std::vector<std::string> out;
  for (const Problem& warning :
       test::loaded("listeners: [{name: mc, address: 'h:80', protocol: memcached, pool: p}]\n"
                    "pools:\n  web: {servers: [{name: a, address: 'h:1'}]}\n  p:\n"
                    "    protocol: memcached\n    servers: [" +
                    servers + "]\n    " + pool + "\n")
           .warnings)
    out.push_back(warning.headline());
  return out;
}

TEST(MemcachedPool, HasNoWarningForWhatItHasByDefault) {
  EXPECT_THAT(warnings_of_memcached(""), IsEmpty());
  EXPECT_THAT(warnings_of_memcached("ring: {scheme: ketama}"), Contains(HasSubstr("needlessly")));
}

TEST(MemcachedPool, AServerThatWasOutGivesOldValues) {
  const auto old_values = HasSubstr(
      "a server that was out gives values from before again, though they were written or deleted "
      "elsewhere meanwhile; memcached: {on_return: distrust} forgets them first");
  EXPECT_THAT(warnings_of_memcached("failover: next"),
              ElementsAre(AllOf(StartsWith("main.yaml:7:15: pools.p.failover: "), old_values)));
  EXPECT_THAT(warnings_of_memcached("outlier: {}"),
              ElementsAre(AllOf(StartsWith("main.yaml:7:5: pools.p.outlier: "), old_values)));
  EXPECT_THAT(warnings_of_memcached("outlier: {}\n    failover: next"),
              ElementsAre(HasSubstr("p.failover: ")));
  for (const char* pool :
       {"failover: fail_fast", "outlier: off",
        "failover: next\n    memcached: {on_return: distrust}",
        "memcached: {on_return: distrust}\n    outlier: {}", "ring: {replicas: 1}",
        "ring: {replicas: 2}\n    memcached: {on_return: distrust}"})
    EXPECT_THAT(warnings_of_memcached(pool), IsEmpty()) << pool;
  EXPECT_THAT(
      warnings_of_memcached("ring: {replicas: 2}"),
      ElementsAre(AllOf(StartsWith("main.yaml:7:22: pools.p.ring.replicas: "), old_values)));
}

TEST(MemcachedPool, MoreReplicasThanServers) {
  const auto warnings = [](const std::string& replicas) {
    return warnings_of_memcached("ring: {replicas: " + replicas +
                                 "}\n    memcached: {on_return: distrust}");
  };
  EXPECT_THAT(warnings("4"),
              ElementsAre("main.yaml:7:22: pools.p.ring.replicas: 4 is more than the number of "
                          "servers, 3: each item is on all of them"));
  EXPECT_THAT(warnings("3"), IsEmpty());
}

TEST(MemcachedPool, ALifetimeThatTheCapCuts) {
  EXPECT_THAT(warnings_of_memcached("memcached: {ttl: 2m, max_ttl: 1m}"),
              ElementsAre("main.yaml:7:22: pools.p.memcached.ttl: is more than max_ttl, which is "
                          "what counts"));
  EXPECT_THAT(warnings_of_memcached("memcached: {ttl: 2m, max_ttl: 0s}"), IsEmpty());
  EXPECT_THAT(warnings_of_memcached("memcached: {ttl: 1m, max_ttl: 1m}"), IsEmpty());
}

TEST(MemcachedPool, TwoCachesThatTakeEachOthersAnswers) {
  const auto warned = [](const std::string& second) {
    return warnings_of_memcached(
        "memcached: {}\n  x: {servers: [{name: x, address: 'h:1'}], cache: c}\n"
        "  y: {servers: [{name: y, address: 'h:1'}], cache: d}\n"
        "caches:\n  d: {store: memcached, pool: p}\n  c: " +
        second);
  };
  EXPECT_THAT(warned("{store: memcached, pool: p}"),
              ElementsAre("main.yaml:12:31: caches.c.pool: \"p\" has the namespace \"clockwise\" "
                          "there for cache \"d\" too: what one keeps the other would give"));
  EXPECT_THAT(warned("{store: memcached, pool: p, namespace: other}"), IsEmpty());
  EXPECT_THAT(warned("{}"), IsEmpty());
}

TEST(AddressNames, AreRightWhereThePeerHashesAddresses) {
  const std::string by_address = "{name: '10.0.0.1:11211', address: 'h:1'}";
  for (const ring::SchemeFacts& facts : ring::schemes()) {
    const auto found = warnings_of(by_address, "scheme: " + std::string(facts.name));
    if (facts.hashes_address)
      EXPECT_THAT(found, IsEmpty()) << facts.name;
    else
      EXPECT_THAT(found, ElementsAre(HasSubstr("is an address, not a name"))) << facts.name;
  }
  EXPECT_THAT(warnings_of("{name: '10.0.0.1:80', address: 'h:1', label: cache-1}"), IsEmpty());
}

TEST(MissingLabels, AreToldOnceForAllServers) {
  EXPECT_THAT(warnings_of("{name: a, address: '10.0.0.1:11211'}", "scheme: ketama"),
              ElementsAre("main.yaml:5:22: pools.p.servers[0].name: the ring hashes the name "
                          "\"a\"; libmemcached (weighted ketama) hashed the text of its own "
                          "configuration, such as 10.0.0.1:11211: set label to that text"));
  EXPECT_THAT(warnings_of("{name: a.example, address: 'h:1'}, {name: b, address: 'h:2'}, "
                          "{name: c, address: 'h:3'}, {name: d, address: 'h:4', label: 'h:4'}",
                          "scheme: nginx"),
              ElementsAre(AllOf(HasSubstr("servers[1].name: the ring hashes the name \"b\""),
                                HasSubstr("(and of 1 more)"))));
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1'}", "scheme: twemproxy"),
              ElementsAre(HasSubstr("such as h:1 or an alias: set label")));
}

TEST(SharedLabels, AreOneOwnerToNginx) {
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1', label: x}, {name: b, address: 'h:2', "
                          "label: x, weight: 2}",
                          "scheme: nginx"),
              ElementsAre(HasSubstr("servers[1].label: \"x\" is also what the ring hashes for the "
                                    "server on line 5: to nginx the two are one owner")));
}

TEST(WideSpread, IsExpectedOfFewPoints) {
  // sqrt((N-1)/(N V + 1)) for N = 2, V = 25 and for N = 10, V = 50.
  EXPECT_THAT(warnings_of(servers_of(2), "points: 25"),
              Contains(AllOf(StartsWith("main.yaml:4:20: pools.p.ring.points: 25 points for "),
                             HasSubstr("stray by about 14 %; more points make it even"))));
  EXPECT_THAT(warnings_of(servers_of(10), "points: 50"), Contains(HasSubstr("about 13 %")));
  EXPECT_THAT(warnings_of(servers_of(10), "points: 100"), Not(Contains(HasSubstr("stray"))));
  EXPECT_THAT(warnings_of(servers_of(1), "points: 1"), IsEmpty());
}

TEST(WideSpread, OfASmallWeightIsToldThere) {
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1'}, {name: b, address: 'h:2', weight: 0.05}"),
              Contains(AllOf(HasSubstr("servers[1].weight: 51 points for \"b\""),
                             HasSubstr("by about 14 %"))));
}

TEST(WideSpread, OfPeersSaysWhatTheirPointsAre) {
  EXPECT_THAT(warnings_of(servers_of(100), "scheme: envoy"),
              Contains(AllOf(HasSubstr("ring.scheme: 11 points for "),
                             HasSubstr("about 30 %; the 1100 points are for the whole ring, "
                                       "min_size: 10000 makes it even"))));
  EXPECT_THAT(warnings_of(servers_of(100), "scheme: haproxy"),
              Contains(AllOf(HasSubstr("ring.scheme: 16 points for "),
                             HasSubstr("about 17 %; a server has 16 for each unit of weight, "
                                       "weights 7 times as large make it even"))));
  EXPECT_THAT(warnings_of(servers_of(5), "scheme: varnish"),
              Contains(HasSubstr("ring.scheme: 67 points for ")));
}

TEST(CoarseWeights, AreThoseThatThePointsCannotExpress) {
  const auto with_weight = [](const std::string& weight, const std::string& points) {
    return warnings_of(
        "{name: a, address: 'h:1', weight: 200}, {name: b, address: 'h:2', weight: " + weight + "}",
        "points: " + points);
  };
  EXPECT_THAT(with_weight("150.4", "100"), IsEmpty());  // 0 % off
  EXPECT_THAT(with_weight("0.04", "60"),
              Contains(HasSubstr("servers[1].weight: 0.04 is worth 2.40 of the 12002 points, "
                                 "\"b\" has 2: 17 % off")));
  // The same for all: their shares are equal whatever the rounding.
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1', weight: 0.04}, {name: b, address: 'h:2', "
                          "weight: 0.04}",
                          "points: 60"),
              Not(Contains(HasSubstr("is worth"))));
}

TEST(CoarseWeights, OfPeersThatDealOutPoints) {
  EXPECT_THAT(warnings_of(servers_of(5, {1, 9, 9, 9, 9}), "scheme: ketama"),
              Contains(AllOf(HasSubstr("servers[0].weight: 1 is worth 21."),
                             HasSubstr("\"s0\" has 20: "))));
}

TEST(Overload, OfOneServerIsMeasuredOnTheRealRing) {
  // A hash that spreads the points of names that are alike badly.
  const std::vector<std::string> found =
      warnings_of(servers_of(4), "scheme: custom, hash: fnv1a_64, points: 200");
  EXPECT_THAT(found, Contains(AllOf(HasSubstr("owns "), HasSubstr(" times the 25.00 % of its "),
                                    HasSubstr(" standard deviations of "))));
  EXPECT_THAT(warnings_of(servers_of(4)), IsEmpty());
  // What a few points do is told by their spread alone.
  EXPECT_THAT(warnings_of(servers_of(4), "points: 1"),
              ElementsAre(HasSubstr("ring.points: 1 point for \"s0\" lets its share of the keys")));
  EXPECT_THAT(warnings_of(servers_of(4), "points: 2"),
              ElementsAre(HasSubstr("ring.points: 2 points for \"s0\" let its share of the keys")));
  // 100 servers of 1024 points: some stray by a tenth, which is what to expect.
  EXPECT_THAT(warnings_of(servers_of(100)), IsEmpty());
  EXPECT_THAT(
      warnings_of(servers_of(4), "scheme: maglev, table: 5"),
      Contains(HasSubstr("owns 40.00 % of the keys, 1.60 times the 25.00 % of its weight")));
}

TEST(KeyHash, ThatReachesNoFurtherThanTheFirstPoint) {
  EXPECT_THAT(warnings_of(servers_of(5), "scheme: twemproxy, hash: crc32"),
              Contains(AllOf(StartsWith("main.yaml:4:37: pools.p.ring.hash: "),
                             HasSubstr("owns 100 % of the keys, its weight is 20 %: crc32 has 15 "
                                       "bits here"))));
  EXPECT_THAT(warnings_of(servers_of(5), "scheme: ketama, key_hash: crc"),
              Contains(HasSubstr("ring.key_hash: ")));
  for (const char* ring : {"scheme: twemproxy, hash: crc32, distribution: modula",
                           "scheme: twemproxy, hash: crc32a", "scheme: haproxy, hash: crc32"})
    EXPECT_THAT(warnings_of(servers_of(5), ring), Not(Contains(HasSubstr("owns 100 %")))) << ring;
}

TEST(KeyHash, ThatSpreadsKeysThatAreAlikeBadly) {
  for (const char* ring : {"scheme: ketama, key_hash: fnv1a_64", "scheme: twemproxy",
                           "scheme: twemproxy, hash: fnv1_64"})
    EXPECT_THAT(warnings_of(servers_of(4), ring),
                Contains(AllOf(HasSubstr("p.ring."), HasSubstr("of 2000 keys "),
                               HasSubstr(", its part of the ring is "),
                               HasSubstr("_64 spreads keys that are alike badly"))))
        << ring;
  for (const char* ring : {"scheme: ketama", "scheme: ketama, key_hash: fnv1a_32",
                           "scheme: twemproxy, hash: murmur", "scheme: libmemcached",
                           "scheme: haproxy", "scheme: envoy", "scheme: custom", "scheme: modulo"})
    for (const std::size_t servers : {2, 4, 10, 50})
      EXPECT_THAT(warnings_of(servers_of(servers), ring), Each(Not(HasSubstr("badly")))) << ring;
}

TEST(Libmemcached, AbortsWithMoreThanAHundredServers) {
  for (const char* ring :
       {"scheme: ketama", "scheme: libmemcached", "scheme: spymemcached, form: libmemcached"}) {
    EXPECT_THAT(warnings_of(servers_of(101), ring),
                Contains(HasSubstr("libmemcached aborts with more than 100 servers, here are 101")))
        << ring;
    EXPECT_THAT(warnings_of(servers_of(100), ring), Not(Contains(HasSubstr("aborts"))));
  }
  EXPECT_THAT(warnings_of(servers_of(101), "scheme: libketama"),
              Not(Contains(HasSubstr("aborts"))));
}

struct Needless {
  std::string ring;
  std::vector<double> weights;
  std::string figure;
};

// Figures that follow from the scheme, or that a model of the peer gave.
TEST(NeedlessMoves, AreToldWithTheFigureForThisPool) {
  const std::vector<Needless> rows = {
      // Of N to N + 1 slots N/(N + 1) of the keys move, 1/(N + 1) of all to the new server.
      {"scheme: modulo", {1}, "adding a server of weight 1 would move 83.3 % of the keys, 66.7 %"},
      {"scheme: nginx-hash",
       {1},
       "adding a server of weight 1 would move 83.3 % of the keys, 66.7"},
      {"scheme: twemproxy, distribution: modula", {1}, "would move 83.3 % of the keys, 66.7 % "},
      {"scheme: envoy", {1}, "removing \"s2\" would move 29.4 % of the keys, 10.9 %"},
      {"scheme: ketama", {1, 2, 3, 5, 8}, "adding a server of weight 3 would move 1"},
      {"scheme: libketama", {1, 2, 3, 5, 8}, "a server of weight 3 would move 1"},
      {"scheme: maglev", {1}, "would move "},
      // Equal weights stay equal digests, until one is another.
      {"scheme: ketama", {1}, "giving \"s2\" twice its weight would move "},
  };
  for (const Needless& row : rows)
    EXPECT_THAT(
        warnings_of(servers_of(5, row.weights), row.ring),
        Contains(AllOf(StartsWith("main.yaml:4:20: pools.p.ring.scheme: "), HasSubstr(row.figure),
                       HasSubstr(" needlessly, between servers that stay as they are; "
                                 "under scheme clockwise none would"))))
        << row.ring;
}

TEST(NeedlessMoves, OfServersThatAreCountedAnew) {
  EXPECT_THAT(warnings_of(servers_of(5, {100}), "scheme: haproxy"),
              ElementsAre(AllOf(StartsWith("main.yaml:4:20: pools.p.ring.scheme: removing \"s2\" "
                                           "would move "),
                                HasSubstr("counted anew. Pin their ids first: \"s0\" has 1, \"s1\" "
                                          "has 2, \"s2\" has 3, …"))));
  EXPECT_THAT(warnings_of("{name: a, address: 'h:1', id: 1, weight: 100}, {name: b, address: "
                          "'h:2', id: 2, weight: 100}",
                          "scheme: haproxy"),
              IsEmpty());
}

TEST(NeedlessMoves, OfARingThatIsTooLargeToTryAreToldWithoutAFigure) {
  EXPECT_THAT(warnings_of(servers_of(2), "scheme: envoy, min_size: 300000"),
              ElementsAre(HasSubstr("ring.scheme: moves keys between servers that stay as they are "
                                    "when another comes, goes or changes its weight")));
}

TEST(NeedlessMoves, AreNoneWhereAChangeMovesOnlyWhatItMust) {
  for (const char* scheme : {"clockwise", "nginx", "varnish", "custom"})
    EXPECT_THAT(warnings_of(servers_of(5, {1, 2, 3, 4, 5}), std::string("scheme: ") + scheme),
                Each(Not(HasSubstr("needless"))))
        << scheme;
}

}  // namespace
}  // namespace clockwise::config
