#include "upstream/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/pools.h"

namespace clockwise::upstream {
namespace {

using ring::ServerIndex;
using test::BuiltPool;
using test::server;
using testing::ElementsAreArray;
using testing::IsEmpty;

// One server for each zone that is named.
BuiltPool in_zones(const std::vector<std::string>& zones, std::uint32_t replicas) {
  config::Pool pool;
  pool.name = "items";
  pool.ring.replicas = replicas;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    pool.servers.push_back(server("s" + std::to_string(i)));
    pool.servers.back().zone = zones[i];
  }
  return BuiltPool(pool);
}

std::vector<ServerIndex> owners_of(const BuiltPool& built, ring::Position position) {
  const Owners owners(built.pool, *built.ring, position);
  std::vector<ServerIndex> all;
  for (std::uint32_t place = 0; place < owners.size(); ++place) all.push_back(owners[place]);
  return all;
}

// The servers as a walk that knows no zones meets them.
std::vector<ServerIndex> walk_of(const BuiltPool& built, ring::Position position) {
  std::vector<ServerIndex> met;
  while (const auto next = built.ring->successor(position, met)) met.push_back(next->server);
  return met;
}

template <class Check>
void for_each_key(const BuiltPool& built, Check check) {
  for (int i = 0; i < 300; ++i) check(built.ring->hash("key:" + std::to_string(i)));
}

TEST(Owners, WithoutZonesTheyAreTheFirstOnTheWalk) {
  const BuiltPool built = in_zones({"", "", "", "", ""}, 3);
  for_each_key(built, [&](ring::Position at) {
    const auto walk = walk_of(built, at);
    EXPECT_THAT(owners_of(built, at), ElementsAreArray(walk.begin(), walk.begin() + 3));
  });
}

TEST(Owners, TheHomeIsTheOwnerWhateverTheZones) {
  const BuiltPool built = in_zones({"x", "x", "y", "", "y"}, 4);
  for_each_key(built, [&](ring::Position at) {
    EXPECT_EQ(owners_of(built, at).front(), built.ring->owner(at));
  });
}

TEST(Owners, EachIsTheFirstOnTheWalkInAZoneThatHasNone) {
  const BuiltPool built = in_zones({"x", "x", "x", "y", "y", "z"}, 3);
  for_each_key(built, [&](ring::Position at) {
    std::set<std::string> zones;
    std::vector<ServerIndex> wanted;
    for (const ServerIndex one : walk_of(built, at))
      if (zones.insert(built.pool.servers[one].zone).second) wanted.push_back(one);
    EXPECT_EQ(owners_of(built, at), wanted);
  });
}

TEST(Owners, WithFewerZonesEachZoneHasItsShare) {
  const BuiltPool built = in_zones({"x", "x", "x", "x", "y", "y"}, 4);
  for_each_key(built, [&](ring::Position at) {
    const auto owners = owners_of(built, at);
    ASSERT_EQ(owners.size(), 4U);
    const auto in_x = std::ranges::count_if(
        owners, [&](ServerIndex one) { return built.pool.servers[one].zone == "x"; });
    EXPECT_EQ(in_x, 2);
    EXPECT_NE(built.pool.servers[owners[0]].zone, built.pool.servers[owners[1]].zone);
  });
}

TEST(Owners, AServerWithoutAZoneIsNextToNobody) {
  const BuiltPool built = in_zones({"x", "x", "", ""}, 3);
  for_each_key(built, [&](ring::Position at) {
    int in_x = 0;
    for (const ServerIndex one : owners_of(built, at)) in_x += built.pool.servers[one].zone == "x";
    EXPECT_EQ(in_x, 1);
  });
}

TEST(Owners, OneZoneIsAsGoodAsNone) {
  const BuiltPool built = in_zones({"x", "x", "x", "x"}, 3);
  for_each_key(built, [&](ring::Position at) {
    const auto walk = walk_of(built, at);
    EXPECT_THAT(owners_of(built, at), ElementsAreArray(walk.begin(), walk.begin() + 3));
  });
}

TEST(Owners, AsManyAsTheRingHas) {
  EXPECT_EQ(owners_of(in_zones({"x", "y", "x"}, 16), 5).size(), 3U);
  EXPECT_EQ(owners_of(in_zones({"", ""}, 3), 5).size(), 2U);
  EXPECT_THAT(owners_of(BuiltPool{server("a", 0)}, 5), IsEmpty());
}

TEST(Owners, BehindThemTheWalkGoesOn) {
  const BuiltPool built = in_zones({"x", "x", "x", "y", "y"}, 2);
  for_each_key(built, [&](ring::Position at) {
    std::vector<ServerIndex> all = owners_of(built, at);
    const auto next = next_owner(built.pool, *built.ring, at, all);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->server, built.ring->successor(at, all)->server);
  });
}

}  // namespace
}  // namespace clockwise::upstream
