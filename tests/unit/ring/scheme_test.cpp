// What each scheme does at its edges, beside the vectors: servers that are down, texts of servers,
// short hashes, and what is refused.
#include "ring/scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ring/literature.h"

namespace clockwise::ring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Members = std::vector<Member>;

std::shared_ptr<const Ring> ring_of(const Scheme& scheme, const Members& members) {
  return build(scheme, members).value();
}

std::vector<ServerIndex> owners(const Ring& ring, int keys = 2'000) {
  std::vector<ServerIndex> result;
  for (int i = 0; i < keys; ++i) result.push_back(ring.owner(ring.hash("/" + std::to_string(i))));
  return result;
}

Member down(std::string label, double weight = 1) {
  return {.label = std::move(label), .weight = weight, .live = false};
}

// Two rings whose servers differ in their texts alone.
struct SameText {
  const char* name;
  Scheme scheme;
  const char* one;
  const char* other;
  bool same;
};

TEST(SchemeLabels, FollowTheRuleOfThePeer) {
  const Scheme nginx{.placement = Placement::nginx}, ketama{.placement = Placement::ketama},
      libketama{.placement = Placement::libketama}, spy{.placement = Placement::spymemcached},
      twemproxy{.placement = Placement::twemproxy};
  const SameText rows[] = {
      {"nginx knows no default port", nginx, "10.0.0.1", "10.0.0.1:80", false},
      {"nginx keeps the case", nginx, "Host:80", "host:80", false},
      {"nginx drops unix:", nginx, "unix:/a", "UNIX:/a", true},
      {"libmemcached drops 11211", ketama, "a:11211", "a", true},
      {"libmemcached keeps other ports", ketama, "a:11212", "a", false},
      {"libketama keeps every port", libketama, "a:11211", "a", false},
      {"twemproxy drops 11211", twemproxy, "a:11211", "a", true},
      {"Java has the port always", spy, "a:11211", "a", true},
      {"Java puts a slash before it", spy, "/a:11211", "a:11211", true},
      {"Java keeps the name of the host", spy, "h/10.0.0.1:11211", "10.0.0.1:11211", false},
  };
  for (const SameText& row : rows) {
    const auto one = ring_of(row.scheme, {{row.one}, {"b:1"}, {"c:1"}});
    const auto other = ring_of(row.scheme, {{row.other}, {"b:1"}, {"c:1"}});
    EXPECT_EQ(owners(*one) == owners(*other), row.same) << row.name;
  }
}

TEST(NginxRing, LinesOfOneTextAreOneOwnerOfTheLargerWeight) {
  const Scheme scheme{.placement = Placement::nginx};
  const auto twice = ring_of(scheme, {{"a:1", 1}, {"b:1", 1}, {"a:1", 3}});
  EXPECT_EQ(owners(*twice), owners(*ring_of(scheme, {{"a:1", 3}, {"b:1", 1}})));
  EXPECT_TRUE(twice->order_matters());
  EXPECT_THAT(point_counts(scheme, Members{{"a:1", 1}, {"b:1", 1}, {"a:1", 3}}),
              ElementsAre(480u, 160u, 0u));
}

TEST(NginxRing, OfLinesOfOneTextALiveOneAnswers) {
  const auto ring = ring_of({.placement = Placement::nginx}, {down("a:1"), {"b:1"}, {"a:1"}});
  const auto expected = ring_of({.placement = Placement::nginx}, {{"c:1", 0}, {"b:1"}, {"a:1"}});
  EXPECT_EQ(owners(*ring), owners(*expected));
}

TEST(NginxRing, AServerThatIsDownLeadsToTheNextOneOfTheWalk) {
  const Scheme scheme{.placement = Placement::nginx};
  const auto all = ring_of(scheme, {{"a:1"}, {"b:1"}, {"c:1"}});
  const auto less = ring_of(scheme, {{"a:1"}, down("b:1"), {"c:1"}});
  const ServerIndex excluded[] = {1};
  for (int i = 0; i < 2'000; ++i) {
    const Position position = all->hash(std::to_string(i));
    EXPECT_EQ(less->owner(position), all->successor(position, excluded)->server);
  }
}

TEST(NginxHash, DrawsAgainPastServersThatAreDown) {
  const Scheme scheme{.placement = Placement::nginx_hash};
  const auto all = ring_of(scheme, {{"a", 2}, {"b", 3}, {"c", 1}});
  const auto less = ring_of(scheme, {{"a", 2}, down("b", 3), {"c", 1}});
  std::vector<int> orphans(3);
  const auto before = owners(*all), after = owners(*less);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != 1)
      EXPECT_EQ(after[i], before[i]);
    else
      ++orphans[after[i]];
  }
  EXPECT_GT(orphans[0], orphans[2]);  // drawn by weight
  EXPECT_GT(orphans[2], 0);
  EXPECT_EQ(orphans[1], 0);
  EXPECT_NE(less->layout().keying, all->layout().keying);
}

TEST(NginxHash, AfterTwentyDrawsItWalksToTheNextLiveServer) {
  const auto ring = ring_of({.placement = Placement::nginx_hash},
                            {down("a", 10'000), {"b", 1}, down("c", 10'000), {"d", 1}});
  const auto found = owners(*ring);
  EXPECT_GT(std::count(found.begin(), found.end(), 1u), 500);
  EXPECT_GT(std::count(found.begin(), found.end(), 3u), 500);
}

TEST(NginxHash, WithoutALiveServerIsEmpty) {
  const auto ring = ring_of({.placement = Placement::nginx_hash}, {down("a"), down("b")});
  EXPECT_TRUE(ring->empty());
  EXPECT_EQ(ring->hash("key"), 0u);
  EXPECT_THAT(ring->shares(), ElementsAre(0.0, 0.0));
}

TEST(Ketama, CountsInSinglePrecision) {
  const Members list{{"a", 10}, {"b", 1}, {"c", 6}, {"d", 6}, {"e", 2}};
  EXPECT_NE(point_counts({.placement = Placement::ketama}, list),
            point_counts({.placement = Placement::libketama}, list));
  for (const std::size_t servers : {25u, 47u, 50u, 55u, 61u, 71u, 94u, 100u})
    EXPECT_EQ(point_counts({.placement = Placement::ketama}, Members(servers, {"a"}))[0], 156u);
  EXPECT_EQ(point_counts({.placement = Placement::libketama}, Members(61, {"a"}))[0], 156u);
  EXPECT_EQ(point_counts({.placement = Placement::libketama}, Members(25, {"a"}))[0], 160u);
}

TEST(Ketama, IsBuiltFromTheLiveServers) {
  for (const Placement placement :
       {Placement::ketama, Placement::libketama, Placement::spymemcached, Placement::twemproxy}) {
    const auto less = ring_of({.placement = placement}, {{"a", 1}, down("b", 5), {"c", 2}});
    const auto listed = ring_of({.placement = placement}, {{"a", 1}, {"b", 0}, {"c", 2}});
    EXPECT_EQ(owners(*less), owners(*listed)) << to_string(placement);
  }
}

TEST(Libmemcached, AnyWeightAboveOneSwitchesToWeightedPoints) {
  const Scheme scheme{.placement = Placement::libmemcached};
  EXPECT_THAT(point_counts(scheme, Members{{"a"}, {"b"}}), ElementsAre(100u, 100u));
  EXPECT_THAT(point_counts(scheme, Members{{"a"}, {"b", 3}}), ElementsAre(80u, 240u));
  EXPECT_THAT(point_counts(scheme, Members{{"a"}, down("b", 3)}), ElementsAre(160u, 0u));
}

TEST(Twemproxy, AllKeysOfTheShortChecksumGoToOneServer) {
  const auto ring =
      ring_of({.placement = Placement::twemproxy, .hash = "crc32"}, {{"a:1"}, {"b:1"}, {"c:1"}});
  EXPECT_EQ(ring->layout().positions, Arc{1} << 15);
  EXPECT_EQ(*std::max_element(ring->shares().begin(), ring->shares().end()), 1.0);
  const ServerIndex first[] = {ring->owner(0)};
  EXPECT_NE(ring->successor(0, first)->server, first[0]);  // the others are still there to fail to
}

TEST(Haproxy, TheIdsDecideAndTheNamesDoNot) {
  const Scheme scheme{.placement = Placement::haproxy};
  const Members by_id{{.label = "x", .id = 2}, {.label = "y", .id = 1}};
  const auto counted = ring_of(scheme, {{"b"}, {"a"}});
  const auto given = ring_of(scheme, by_id);
  for (int i = 0; i < 500; ++i) {
    const Position position = counted->hash(std::to_string(i));
    EXPECT_EQ(counted->owner(position), 1 - given->owner(position));
  }
  EXPECT_TRUE(counted->order_matters());
  EXPECT_FALSE(given->order_matters());
}

TEST(Haproxy, AServerThatIsDownStillCountsForTheIds) {
  const Scheme scheme{.placement = Placement::haproxy};
  const auto down_one = ring_of(scheme, {{"a"}, down("b"), {"c"}});
  const auto ids = ring_of(scheme, {{.label = "a", .id = 1}, {"b", 0}, {.label = "c", .id = 3}});
  EXPECT_EQ(owners(*down_one), owners(*ids));
}

TEST(Varnish, BehindTheLastPointItStaysOnIt) {
  const Scheme scheme{.placement = Placement::varnish, .points = 3};
  const auto ring = ring_of(scheme, {{"a"}, {"b"}, {"c"}});
  const Point last = ring->points().back();
  EXPECT_EQ(ring->owner(0xffff'ffff), last.server);
  // Down, it leads to the next server on the walk, which begins again at the bottom.
  Members members{{"a"}, {"b"}, {"c"}};
  members[last.server].live = false;
  const auto less = ring_of(scheme, members);
  const auto next = std::find_if(ring->points().begin(), ring->points().end(),
                                 [&](const Point& point) { return point.server != last.server; });
  EXPECT_EQ(less->owner(0xffff'ffff), next->server);
}

TEST(Envoy, HashesKeysByXxh64WhateverThePointsAreHashedBy) {
  const Members members{{"a"}, {"b"}};
  const auto murmur = ring_of({.placement = Placement::envoy, .hash = "murmur2"}, members);
  const auto xxh64 = ring_of({.placement = Placement::envoy}, members);
  EXPECT_EQ(murmur->hash("key"), xxh64->hash("key"));
  EXPECT_NE(owners(*murmur), owners(*xxh64));
}

TEST(Envoy, KnowsWhenRoundingDependsOnTheOrder) {
  EXPECT_FALSE(ring_of({.placement = Placement::envoy}, {{"a"}, {"b"}})->order_matters());
  EXPECT_TRUE(ring_of({.placement = Placement::envoy, .min_size = 5, .max_size = 5}, {{"a"}, {"b"}})
                  ->order_matters());
}

TEST(Custom, OfEqualPositionsTheSmallerNameOwnsThem) {
  const auto ring = ring_of({.placement = Placement::custom, .points = 5},
                            {{.label = "x", .name = "b"}, {.label = "x", .name = "a"}});
  EXPECT_THAT(ring->shares(), ElementsAre(0.0, 1.0));
  EXPECT_FALSE(ring->order_matters());
}

TEST(Custom, TakesTheFirstBitsOfADigestAndTheLowOnesOfANumber) {
  const Members one{{"a"}};
  const auto position = [&](const char* hash, std::uint32_t bits) {
    return ring_of({.placement = Placement::custom, .points = 1, .hash = hash, .bits = bits}, one)
        ->hash("abc");
  };
  EXPECT_EQ(position("sha256", 32), 0xba7816bfu);
  EXPECT_EQ(position("sha256", 64), 0xba7816bf8f01cfeau);
  EXPECT_EQ(position("sha256", 256), 0xba7816bf8f01cfeau);
  EXPECT_EQ(position("md5", 32), 0x90015098u);
  EXPECT_EQ(position("sha1", 32), 0xa9993e36u);
  EXPECT_EQ(position("xxh64", 64), 0x44bc2cf5ad770999u);
  EXPECT_EQ(position("xxh64", 32), 0xad770999u);
}

TEST(KeyPart, IsWhatIsHashed) {
  struct Row {
    KeyPart part;
    std::string_view key, hashed;
  };
  for (const auto& [part, key, hashed] : {
           Row{{}, "ns:a{b}", "ns:a{b}"}, Row{{"", "{}"}, "ns:a{b}", "b"},
           Row{{"ns:", ""}, "ns:a{b}", "a{b}"}, Row{{"ns:", "{}"}, "ns:a{b}", "b"},
           Row{{"ns:", ""}, "a", "a"}, Row{{"ns:", ""}, "xns:a", "xns:a"},
           Row{{"ns:", ""}, "ns:ns:a", "ns:a"},  // once
           Row{{"ns:", ""}, "ns:", "ns:"},       // nothing else would be left
           Row{{"ns:", ""}, "", ""},
           Row{{"a{", "{}"}, "a{b}c", "b}c"},  // the tag begins in the namespace
       })
    EXPECT_EQ(canonical_key(key, part), hashed) << key;
}

TEST(KeyPart, CountsInEveryScheme) {
  const Members members{{"a"}, {"b"}, {"c"}};
  for (const SchemeFacts& facts : schemes()) {
    const auto plain = ring_of({.placement = facts.placement}, members);
    const auto part =
        ring_of({.placement = facts.placement, .hash_tag = "{}", .key_namespace = "ns:"}, members);
    for (const std::string_view key : {"a", "key:17", "/page"}) {
      EXPECT_EQ(part->hash("ns:" + std::string(key)), plain->hash(key)) << facts.name;
      EXPECT_EQ(part->hash("ns:{" + std::string(key) + "}x"), plain->hash(key)) << facts.name;
      EXPECT_EQ(part->hash(key), plain->hash(key)) << facts.name;
    }
  }
}

TEST(Keying, IsEqualWhereKeysAreHashedAlike) {
  const Members members{{"a"}, {"b"}};
  const auto keying = [&](const Scheme& scheme) {
    return ring_of(scheme, members)->layout().keying;
  };
  const std::string xxh64 = keying({});
  EXPECT_EQ(xxh64, keying({.placement = Placement::envoy}));
  EXPECT_EQ(xxh64, keying({.placement = Placement::envoy, .hash = "murmur2"}));
  EXPECT_EQ(xxh64, keying({.placement = Placement::custom, .hash = "xxh64", .bits = 64}));
  EXPECT_NE(xxh64, keying({.placement = Placement::custom, .hash = "xxh64", .bits = 32}));
  EXPECT_NE(xxh64, keying({.hash_tag = "{}"}));
  EXPECT_NE(xxh64, keying({.key_namespace = "{}"}));
  EXPECT_NE(keying({.hash_tag = "{}"}), keying({.key_namespace = "{}"}));
  EXPECT_EQ(keying({.placement = Placement::nginx}),
            keying({.placement = Placement::twemproxy, .hash = "crc32a"}));
  EXPECT_NE(keying({.placement = Placement::custom, .hash = "md5"}),
            keying({.placement = Placement::ketama}));  // the other octet order
  EXPECT_NE(keying({.placement = Placement::haproxy, .hash = "sdbm", .avalanche = true}),
            keying({.placement = Placement::haproxy, .hash = "sdbm", .avalanche = false}));
}

TEST(Keying, OfTablesIsThatOfCircles) {
  const Members members{{"a"}, {"b"}};
  EXPECT_EQ(ring_of({.placement = Placement::maglev}, members)->layout().keying,
            ring_of({.placement = Placement::envoy}, members)->layout().keying);
  EXPECT_EQ(ring_of({.placement = Placement::modulo, .hash = "sha1"}, members)->layout().keying,
            ring_of({.placement = Placement::custom, .hash = "sha1"}, members)->layout().keying);
}

// How many of the keys have another owner.
int moved(const Ring& before, const Ring& after, const std::string& prefix) {
  int count = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = prefix + std::to_string(i);
    count += before.owner(before.hash(key)) != after.owner(after.hash(key)) ? 1 : 0;
  }
  return count;
}

TEST(Literature, PublishedNumbersComeOutToTheDigit) {
  const Members abc{{"A"}, {"B"}, {"C"}}, abcd{{"A"}, {"B"}, {"C"}, {"D"}};
  const Scheme sha256{.placement = Placement::custom,
                      .points = 128,
                      .hash = "sha256",
                      .label = "node:{name}:{i}",
                      .bits = 256};
  const Scheme mod256{.placement = Placement::modulo, .hash = "sha256", .bits = 256};
  EXPECT_EQ(moved(*ring_of(sha256, abc), *ring_of(sha256, abcd), "key:"), 26'510);
  EXPECT_EQ(moved(*ring_of(mod256, abc), *ring_of(mod256, abcd), "key:"), 74'934);

  const Members four{{"a"}, {"b"}, {"c"}, {"d"}}, five{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}};
  const Scheme sha1{.placement = Placement::custom, .points = 150, .hash = "sha1"};
  const Scheme mod1{.placement = Placement::modulo, .hash = "sha1"};
  EXPECT_EQ(moved(*ring_of(sha1, four), *ring_of(sha1, five), "order:"), 21'660);
  EXPECT_EQ(moved(*ring_of(mod1, four), *ring_of(mod1, five), "order:"), 79'931);

  EXPECT_EQ(moved(*build_siphash_u32(100, 4), *build_siphash_u32(100, 5), "key:"), 19'195);
  EXPECT_EQ(moved(*build_siphash_modulo(4), *build_siphash_modulo(5), "key:"), 79'759);
}

struct Refusal {
  Scheme scheme;
  Members members;
  const char* message;
};

TEST(SchemeRefusals, SayWhatIsWrongAndWhatIsWanted) {
  const Refusal rows[] = {
      {{.placement = Placement::twemproxy, .hash = "md4"}, {}, "hash \"md4\" is none that"},
      {{.placement = Placement::nginx, .hash = "md5"}, {}, "leave it out"},
      {{.hash_tag = "{"}, {}, "two characters"},
      {{.placement = Placement::custom, .hash = "md5", .bits = 256}, {}, "only sha256"},
      {{.placement = Placement::custom, .hash = "crc32", .bits = 64}, {}, "crc32 has 32 bits"},
      {{.placement = Placement::modulo, .bits = 48}, {}, "bits 48 must be 32, 64 or 256"},
      {{.placement = Placement::custom, .label = "{name}"}, {}, "lacks {i}"},
      {{.placement = Placement::custom, .label = "{i}"}, {}, "lacks {name}"},
      {{.placement = Placement::maglev, .table = 65'536}, {}, "not a prime"},
      {{.placement = Placement::maglev, .table = 2}, {{"a"}, {"b"}, {"c"}}, "fewer slots"},
      {{.placement = Placement::envoy, .min_size = 0}, {}, "at least one point"},
      {{.placement = Placement::envoy, .min_size = 9, .max_size = 8}, {}, "below min_size 9"},
      {{.placement = Placement::spymemcached, .form = "c"}, {}, "java or libmemcached"},
      {{.placement = Placement::twemproxy, .distribution = "random"}, {}, "ketama or modula"},
      {{.placement = Placement::haproxy},
       {{.label = "a", .id = 7}, {.label = "b", .id = 7}},
       "id 7 belongs to two servers"},
      {{.placement = Placement::nginx}, {{"a", 1.5}}, "not a whole number"},
      {{.placement = Placement::haproxy}, {{"a", 257}}, "is not 0 to 256"},
      {{}, {{"a", -1}}, "is not 0 to 10000"},
      {{.placement = Placement::nginx},
       {{"a", 10'000}, {"b", 10'000}, {"c", 10'000}},
       "lower the weights"},
      {{.placement = Placement::maglev, .table = 5'000'011}, {{"a"}}, "`table` of at most 4000000"},
      {{.placement = Placement::envoy},
       {{"a", 0.001}, {"b", 10'000}},
       "`max_size: 4000000` would fit"},
  };
  for (const Refusal& row : rows) {
    const auto refused = build(row.scheme, row.members);
    ASSERT_FALSE(refused.has_value()) << row.message;
    EXPECT_THAT(refused.error().message, HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace clockwise::ring
