// `ring:` and what its scheme makes of the servers.
#include "config/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/configs.h"

namespace clockwise::config {
namespace {

using ring::Placement;
using test::loaded;
using test::problems_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string with_ring(const std::string& ring,
                      const std::string& servers = "{name: a, address: 'h:1'}") {
  return "listeners: [{name: web, address: 'h:80', pool: p}]\npools:\n  p:\n    ring: {" + ring +
         "}\n    servers: [" + servers + "]\n";
}

ring::Scheme scheme_of(const std::string& ring) {
  return loaded(with_ring(ring)).config.pools.at(0).ring.scheme;
}

TEST(Ring, EveryParameterArrives) {
  const ring::Scheme ketama = scheme_of("scheme: ketama, key_hash: crc");
  EXPECT_EQ(ketama.placement, Placement::ketama);
  EXPECT_EQ(ketama.hash, "crc");
  const ring::Scheme spy = scheme_of("scheme: spymemcached, form: libmemcached, hash: murmur");
  EXPECT_EQ(spy.form, "libmemcached");
  EXPECT_EQ(spy.hash, "murmur");
  EXPECT_EQ(scheme_of("scheme: twemproxy, distribution: modula").distribution, "modula");
  const ring::Scheme envoy = scheme_of("scheme: envoy, min_size: 100, max_size: 200");
  EXPECT_EQ(envoy.min_size, 100U);
  EXPECT_EQ(envoy.max_size, 200U);
  EXPECT_EQ(scheme_of("scheme: maglev, table: 251").table, 251U);
  const ring::Scheme custom =
      scheme_of("scheme: custom, hash: sha256, label: 'n:{name}:{i}', points: 128, bits: 256");
  EXPECT_EQ(custom.label, "n:{name}:{i}");
  EXPECT_EQ(custom.points, 128U);
  EXPECT_EQ(custom.bits, 256U);
  EXPECT_EQ(scheme_of("hash_tag: '{}'").hash_tag, "{}");
}

// What a memcached pool has to begin with leaves nothing behind in the scheme that is chosen.
TEST(Ring, OfAMemcachedPoolIsKetamaUnlessAnotherIsNamed) {
  const auto of_memcached = [](std::string text) {
    text.insert(text.find("    ring"), "    protocol: memcached\n");
    return loaded(text).config.pools.at(0).ring.scheme;
  };
  for (const ring::SchemeFacts& facts : ring::schemes()) {
    const std::string text = with_ring("scheme: " + std::string(facts.name));
    EXPECT_EQ(of_memcached(text), loaded(text).config.pools.at(0).ring.scheme) << facts.name;
  }
  EXPECT_EQ(of_memcached(with_ring("")), scheme_of("scheme: ketama"));
  EXPECT_EQ(of_memcached(with_ring("key_hash: crc")), scheme_of("scheme: ketama, key_hash: crc"));
}

TEST(Ring, ParametersMayStandBeforeTheScheme) {
  EXPECT_EQ(scheme_of("table: 251, hash_tag: '<>', scheme: maglev"),
            scheme_of("scheme: maglev, hash_tag: '<>', table: 251"));
}

TEST(Ring, TheDefaultOfPointsIsThatOfTheScheme) {
  EXPECT_EQ(scheme_of("").points, 1024U);
  EXPECT_EQ(scheme_of("scheme: varnish").points, 67U);
  EXPECT_EQ(scheme_of("points: 5, scheme: varnish").points, 5U);
  EXPECT_EQ(scheme_of("scheme: custom").points, 1024U);
}

TEST(Ring, AHashThatIsLeftOutIsTheSameAsTheDefaultWritten) {
  EXPECT_EQ(scheme_of("scheme: ketama"), scheme_of("scheme: ketama, key_hash: md5"));
  EXPECT_EQ(scheme_of("scheme: libmemcached").hash, "one_at_a_time");
  EXPECT_EQ(scheme_of("scheme: clockwise").hash, "");
}

TEST(Ring, HaproxyMixesOnceMoreUnlessAHashIsNamed) {
  struct Row {
    const char* written;
    bool avalanche;
  };
  for (const Row& row :
       {Row{"", true}, Row{", hash: sdbm", false}, Row{", hash: sdbm, avalanche: on", true},
        Row{", avalanche: off", false}, Row{", avalanche: true", true}}) {
    const ring::Scheme scheme = scheme_of(std::string("scheme: haproxy") + row.written);
    EXPECT_EQ(scheme.avalanche, row.avalanche) << row.written;
    EXPECT_EQ(scheme.hash, "sdbm") << row.written;
  }
  EXPECT_EQ(scheme_of("scheme: ketama").avalanche, std::nullopt);
}

TEST(Ring, EveryParameterOfASchemeIsKnownAndThoseOfOthersAreRefused) {
  for (const ring::SchemeFacts& facts : ring::schemes()) {
    for (const ring::SchemeFacts& other : ring::schemes()) {
      for (const std::string_view key : other.parameters) {
        const bool takes = std::ranges::find(facts.parameters, key) != facts.parameters.end();
        const std::string text =
            with_ring("scheme: " + std::string(facts.name) + ", " + std::string(key) + ": [wrong]");
        const std::string rule = takes ? "is not a single value" : "belongs to scheme ";
        EXPECT_THAT(problems_of(text), ElementsAre(HasSubstr(rule))) << text;
      }
    }
  }
}

TEST(Ring, AnUnknownSchemeIsTheOnlyProblem) {
  EXPECT_THAT(problems_of(with_ring("scheme: haproxi, hash: md4, table: 1, points: 0",
                                    "{name: a, address: 'h:1', id: 3, weight: 0.5}")),
              ElementsAre(HasSubstr("did you mean \"haproxy\"?")));
}

TEST(Ring, TheMessagesOfParameters) {
  struct Row {
    const char* ring;
    const char* message;
  };
  for (const Row& row : {
           Row{"scheme: maglev, table: 10",
               "4:35: pools.p.ring.table: \"10\" is not a prime "
               "number; 11 is"},
           Row{"scheme: maglev, table: 9", "\"9\" is not a prime number; 11 is"},
           Row{"scheme: custom, hash: crc32, bits: 64", "\"64\" is more than the 32 bits of crc32"},
           Row{"scheme: custom, hash: sha1, bits: 256", "is more than the 160 bits of sha1"},
           Row{"scheme: modulo, bits: 33", "\"33\" is not 32, 64 or 256"},
           Row{"scheme: nginx, tabel: 3", "unknown key \"tabel\""},
           Row{"scheme: maglev, tabel: 3", "did you mean \"table\"?"},
           Row{"table: 3", "4:12: pools.p.ring.table: belongs to scheme maglev, not to clockwise"},
           Row{"hash_tag: abc", "\"abc\" is not two ASCII characters that stand around the tag"},
           Row{"hash_tag: é", "\"é\" is not two ASCII characters"},
       })
    EXPECT_THAT(problems_of(with_ring(row.ring)), ElementsAre(HasSubstr(row.message))) << row.ring;
}

TEST(ServersOfAScheme, MayRepeatLabelsWhereThePeerDoes) {
  const std::string servers =
      "{name: a, address: 'h:1', label: x}, {name: b, address: 'h:2', label: x}";
  for (const ring::SchemeFacts& facts : ring::schemes()) {
    const std::string text = with_ring("scheme: " + std::string(facts.name), servers);
    if (facts.may_repeat_labels)
      EXPECT_THAT(problems_of(text), IsEmpty()) << facts.name;
    else
      EXPECT_THAT(problems_of(text), ElementsAre(HasSubstr("hashes the same label"))) << facts.name;
  }
}

TEST(ServersOfAScheme, HaveTheWeightsOfThePeer) {
  for (const ring::SchemeFacts& facts : ring::schemes()) {
    const auto with_weight = [&](const char* weight) {
      return problems_of(
          with_ring("scheme: " + std::string(facts.name),
                    "{name: a, address: 'h:1', weight: " + std::string(weight) + "}"));
    };
    EXPECT_EQ(with_weight("1.5").empty(), !facts.whole_weights) << facts.name;
    EXPECT_EQ(with_weight("257").empty(), facts.max_weight > 256) << facts.name;
    EXPECT_THAT(with_weight("2.0"), IsEmpty()) << facts.name;
  }
}

TEST(ServersOfAScheme, HaveIdsUnderHaproxyOnly) {
  const std::string servers = "{name: a, address: 'h:1', id: 4294967295}";
  for (const ring::SchemeFacts& facts : ring::schemes())
    EXPECT_EQ(problems_of(with_ring("scheme: " + std::string(facts.name), servers)).empty(),
              facts.takes_id)
        << facts.name;
  EXPECT_EQ(loaded(with_ring("scheme: haproxy", servers)).config.pools.at(0).servers.at(0).id,
            4294967295U);
}

}  // namespace
}  // namespace clockwise::config
