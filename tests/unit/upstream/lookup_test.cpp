#include "upstream/lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "support/pools.h"
#include "upstream/json.h"
#include "upstream/key_count.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;
using test::BuiltPool;
using test::kNoPool;
using test::server;

TEST(Lookup, FindsDistinctOwnersTheHomeFirst) {
  const BuiltPool built{server("a"), server("b"), server("off", 0), server("c")};
  const ring::Position hash = built.ring->hash("/key");
  const KeyPlace place = locate(built.pool, *built.ring, hash, 10);
  ASSERT_EQ(place.owners.size(), 3u);
  EXPECT_EQ(place.owners[0], built.ring->owner(hash));
  EXPECT_EQ(place.owners[1], built.ring->successor(hash, std::vector{place.owners[0]})->server);
  EXPECT_EQ(locate(built.pool, *built.ring, hash).owners.size(), 1u);
}

TEST(Lookup, OfAnEmptyRingFindsNobody) {
  const BuiltPool built{server("a", 0)};
  const KeyPlace place = locate(built.pool, *built.ring, 5, 2);
  EXPECT_TRUE(place.owners.empty());
  EXPECT_EQ(json::serialize(to_json(built.pool, "k", place)),
            R"({"key":"k","hash":"5","server":null,"address":null,"replicas":[],"previous":null})");
}

TEST(Lookup, WritesTheObjectOfTheInterface) {
  const BuiltPool built{server("a")};
  const KeyPlace place = locate(built.pool, *built.ring, ~ring::Position{0}, 2);
  EXPECT_EQ(json::serialize(to_json(built.pool, "/x", place)),
            R"({"key":"/x","hash":"18446744073709551615","server":"a","address":"a:80",)"
            R"("replicas":["a"],"previous":null})");
  EXPECT_EQ(to_json(built.pool, "/x", place, "b").at("previous"), "b");
}

TEST(Lookup, KeepsTheKeyByteForByteAndWritesValidText) {
  const BuiltPool built{server("a")};
  const json::object object = to_json(built.pool, "caf\xc3\xa9 \xff", KeyPlace{});
  EXPECT_EQ(object.at("key"), "caf\xc3\xa9 \xff");
  EXPECT_EQ(to_text(object.at("key")), "\"caf\xc3\xa9 \\ufffd\"");
}

TEST(KeyCounter, CountsEachKeyThatChangesItsOwner) {
  const BuiltPool before{server("a"), server("b")}, after{server("a"), server("b"), server("c")};
  KeyCounter counter(before, after);
  std::uint64_t to_c = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "/item/" + std::to_string(i);
    counter.add(key);
    to_c += after.ring->owner(after.ring->hash(key)) == 2;
  }
  const KeyCount count = counter.result();
  EXPECT_EQ(count.total, 1000u);
  EXPECT_EQ(count.moved, to_c);
  ASSERT_EQ(count.moves.size(), 2u);
  EXPECT_EQ(count.moves[0].from + count.moves[0].to, "ac");
  EXPECT_EQ(count.moves[1].from + count.moves[1].to, "bc");
  EXPECT_EQ(count.moves[0].count + count.moves[1].count, to_c);
}

TEST(KeyCounter, WithoutAnOwnerOnOneSideNothingMoves) {
  const BuiltPool here{server("a")};
  KeyCounter counter(kNoPool, here);
  counter.add("/x");
  EXPECT_EQ(counter.result().total, 1u);
  EXPECT_EQ(counter.result().moved, 0u);
}

}  // namespace
}  // namespace clockwise::upstream
