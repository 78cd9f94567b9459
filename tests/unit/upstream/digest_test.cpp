#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <random>
#include <set>

#include "support/pools.h"
#include "upstream/plan.h"
#include "upstream/ring_settings.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;
using config::Pool;
using config::ServerState;
using ring::Placement;
using test::server;

using Change = std::function<void(Pool&)>;
using Changes = std::vector<std::pair<std::string, Change>>;

Pool base_of(Placement placement) {
  Pool pool = test::pool({server("a"), server("b", 2), server("c", 3), server("d", 1)});
  pool.ring.scheme.placement = placement;
  pool.ring.key = "{uri:normalized}";
  pool.ring.key_ignore = {"sid", "utm_*"};
  pool.servers[2].label = "10.0.0.3:80";
  return pool;
}

std::string digest_after(Pool pool, const Change& change) {
  change(pool);
  return ring_digest(pool);
}

// Every parameter that some scheme has, changed to another value than the default.
const Changes& parameters() {
  static const Changes kAll{
      {"points", [](Pool& p) { p.ring.scheme.points += 1; }},
      {"hash", [](Pool& p) { p.ring.scheme.hash = "crc32"; }},
      {"key_hash", [](Pool& p) { p.ring.scheme.hash = "crc"; }},
      {"form", [](Pool& p) { p.ring.scheme.form = "libmemcached"; }},
      {"distribution", [](Pool& p) { p.ring.scheme.distribution = "modula"; }},
      {"avalanche", [](Pool& p) { p.ring.scheme.avalanche = false; }},
      {"min_size", [](Pool& p) { p.ring.scheme.min_size = 7; }},
      {"max_size", [](Pool& p) { p.ring.scheme.max_size = 7777; }},
      {"table", [](Pool& p) { p.ring.scheme.table = 251; }},
      {"label", [](Pool& p) { p.ring.scheme.label = "{i}/{name}"; }},
      {"bits", [](Pool& p) { p.ring.scheme.bits = 64; }},
  };
  return kAll;
}

TEST(Digest, IsSixteenHexDigits) {
  const std::string digest = ring_digest(base_of(Placement::clockwise));
  EXPECT_EQ(digest.size(), 16u);
  EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Digest, IsBlindToWhatDecidesNoOwner) {
  const Changes changes{
      {"address", [](Pool& p) { p.servers[0].address.text = "10.9.9.9:1"; }},
      {"zone", [](Pool& p) { p.servers[0].zone = "z"; }},
      {"name of the pool", [](Pool& p) { p.name = "other"; }},
      {"guards", [](Pool& p) { p.max_remap = 0.1; }},
      {"retries", [](Pool& p) { p.retry.attempts = 7; }},
      {"memcached", [](Pool& p) { p.memcached.ttl = std::chrono::seconds(1); }},
      {"the name as its own label", [](Pool& p) { p.servers[0].label = "a"; }},
  };
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    const Pool base = base_of(scheme.placement);
    for (const auto& [name, change] : changes)
      EXPECT_EQ(digest_after(base, change), ring_digest(base)) << scheme.name << ": " << name;
  }
}

TEST(Digest, IsTheSameForEveryOrderUnlessOrderCounts) {
  std::mt19937 random(3);
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    Pool pool = base_of(scheme.placement);
    // Automatic ids follow the order; where they are given it does not count.
    for (std::uint32_t i = 0; i < pool.servers.size(); ++i) pool.servers[i].id = i + 1;
    const std::string digest = ring_digest(pool), in_order = ring_digest(pool, true);
    const auto original = pool.servers;
    for (int i = 0; i < 50; ++i) {
      std::shuffle(pool.servers.begin(), pool.servers.end(), random);
      EXPECT_EQ(ring_digest(pool), digest) << scheme.name;
      EXPECT_EQ(ring_digest(pool, true) == in_order, pool.servers == original) << scheme.name;
    }
  }
}

TEST(Digest, TellsZonesApartWhereAKeyHasSeveralOwners) {
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    Pool base = base_of(scheme.placement);
    base.ring.replicas = 2;
    for (std::uint32_t i = 0; i < base.servers.size(); ++i) base.servers[i].id = i + 1;
    const std::string without = ring_digest(base);
    const std::string zoned = digest_after(base, [](Pool& p) { p.servers[0].zone = "z"; });
    EXPECT_NE(zoned, without) << scheme.name;
    EXPECT_NE(digest_after(base, [](Pool& p) { p.servers[1].zone = "z"; }), zoned) << scheme.name;
    const auto turned = [](Pool& p) {
      p.servers[0].zone = "z";
      std::ranges::reverse(p.servers);
    };
    EXPECT_EQ(digest_after(base, turned), zoned) << scheme.name;
  }
}

TEST(Digest, ChangesWithEverythingThatDecidesAnOwner) {
  const Changes changes{
      {"name", [](Pool& p) { p.servers[0].name = "e"; }},
      {"label", [](Pool& p) { p.servers[0].label = "e"; }},
      {"no label", [](Pool& p) { p.servers[2].label.reset(); }},
      {"weight", [](Pool& p) { p.servers[0].weight = 1.0000001; }},
      {"weight 0", [](Pool& p) { p.servers[0].weight = 0; }},
      {"draining", [](Pool& p) { p.servers[0].state = ServerState::draining; }},
      {"down", [](Pool& p) { p.servers[0].state = ServerState::down; }},
      {"key", [](Pool& p) { p.ring.key = "{path}"; }},
      {"key_ignore", [](Pool& p) { p.ring.key_ignore.emplace_back("x"); }},
      {"nothing ignored", [](Pool& p) { p.ring.key_ignore.clear(); }},
      {"hash tag", [](Pool& p) { p.ring.scheme.hash_tag = "{}"; }},
      {"namespace", [](Pool& p) { p.ring.scheme.key_namespace = "{}"; }},
      {"replicas", [](Pool& p) { p.ring.replicas = 2; }},
      {"one less", [](Pool& p) { p.servers.pop_back(); }},
      {"one more", [](Pool& p) { p.servers.push_back(server("e")); }},
  };
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    const Pool base = base_of(scheme.placement);
    for (const auto& [name, change] : changes)
      EXPECT_NE(digest_after(base, change), ring_digest(base)) << scheme.name << ": " << name;
    if (!scheme.takes_id) continue;
    EXPECT_NE(digest_after(base, [](Pool& p) { p.servers[0].id = 9; }), ring_digest(base));
  }
}

TEST(Digest, CoversTheParametersOfTheSchemeAndNoOthers) {
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    const Pool base = base_of(scheme.placement);
    const auto takes = [&](std::string_view name) {
      // A named hash also decides the avalanche; both names of a hash are one setting.
      const auto has = [&](std::string_view one) {
        return std::ranges::find(scheme.parameters, one) != scheme.parameters.end();
      };
      return has(name) || (name.ends_with("hash") && (has("hash") || has("key_hash")));
    };
    for (const auto& [name, change] : parameters())
      EXPECT_EQ(digest_after(base, change) != ring_digest(base), takes(name))
          << scheme.name << ": " << name;
  }
}

TEST(Digest, TakesEveryPairOfSchemesApart) {
  std::set<std::string> digests;
  for (const ring::SchemeFacts& scheme : ring::schemes())
    EXPECT_TRUE(digests.insert(ring_digest(base_of(scheme.placement))).second) << scheme.name;
}

TEST(Digest, ADefaultThatIsWrittenOutIsNoOther) {
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    if (scheme.hashes.empty() || scheme.placement == Placement::haproxy) continue;
    const Change spelled = [&](Pool& p) { p.ring.scheme.hash = scheme.hashes.front(); };
    const Pool base = base_of(scheme.placement);
    EXPECT_EQ(digest_after(base, spelled), ring_digest(base)) << scheme.name;
  }
  const Pool haproxy = base_of(Placement::haproxy);
  const std::string digest = ring_digest(haproxy);
  const auto with = [&](const char* hash, std::optional<bool> avalanche) {
    return digest_after(haproxy, [&](Pool& p) {
      p.ring.scheme.hash = hash;
      p.ring.scheme.avalanche = avalanche;
    });
  };
  EXPECT_EQ(with("", true), digest);
  EXPECT_EQ(with("sdbm", true), digest);
  EXPECT_NE(with("sdbm", std::nullopt), digest) << "a hash that is named has no avalanche";
}

TEST(RingSettings, HaveEveryParameterOfTheScheme) {
  for (const ring::SchemeFacts& scheme : ring::schemes()) {
    const json::object settings = ring_settings(base_of(scheme.placement).ring);
    EXPECT_EQ(settings.at("scheme"), json::value(scheme.name));
    for (const std::string_view name : scheme.parameters)
      EXPECT_FALSE(settings.at(name).is_null()) << scheme.name << ": " << name;
    EXPECT_EQ(settings.size(), scheme.parameters.size() + 4) << scheme.name;
  }
  EXPECT_EQ(json::serialize(ring_settings(base_of(Placement::clockwise).ring)),
            R"({"scheme":"clockwise","points":1024,"hash_tag":"","key":"{uri:normalized}",)"
            R"("key_ignore":["sid","utm_*"]})");
}

TEST(RingSettings, OfMemcachedServersTellTheNamespaceAndTheReplicas) {
  config::Ring ring;
  ring.scheme.key_namespace = "ns:";
  ring.replicas = 2;
  const json::object settings = ring_settings(ring);
  EXPECT_EQ(settings.at("namespace"), json::value("ns:"));
  EXPECT_EQ(settings.at("replicas"), json::value(2));
}

TEST(Digest, TextsThatRunIntoEachOtherDiffer) {
  config::Pool one = test::pool({server("a")}), other = test::pool({server("a")});
  one.servers[0].label = "b 1 on\nserver 1:c";
  other.servers[0].label = "b";
  other.servers.push_back(server("c"));
  EXPECT_NE(ring_digest(one), ring_digest(other));
}

}  // namespace
}  // namespace clockwise::upstream
