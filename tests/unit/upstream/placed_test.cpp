#include "upstream/placed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/pools.h"

namespace clockwise::upstream {
namespace {

Placed of(std::initializer_list<config::Server> servers) { return placed(test::pool(servers)); }

TEST(Placed, ReadsBackWhatItWrote) {
  Placed before = of({test::server("a"), test::server("b", 0.1), test::server("c", 1e-7),
                      test::server("d", 2, config::ServerState::draining),
                      test::server("e", 3, config::ServerState::down), test::server("f", 0)});
  before.ring.scheme.points = 100;
  before.servers[0].zone = "eu: \"west\"";
  before.servers[1].label = "${HOME}#${not closed $${x} \\ é";
  before.servers[2].address = {
      .text = "unix:/run/c.sock", .host = {}, .port = 0, .path = "/run/c.sock"};
  before.servers[3].address = {.text = "[::1]:80", .host = "::1", .port = 80, .path = {}};
  const auto read = parse_placed(to_text(before));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, before);
  EXPECT_EQ(to_text(*read), to_text(before));
}

TEST(Placed, OfMemcachedServersHasTheKeyOfItsItems) {
  config::Pool pool = test::pool({test::server("a"), test::server("b")});
  pool.protocol = config::Protocol::memcached;
  pool.ring.scheme.placement = ring::Placement::ketama;
  pool.ring.scheme.hash = "md5";
  pool.ring.scheme.key_namespace = "${HOME}:";
  pool.ring.key = "{host}{uri}";
  pool.ring.replicas = 2;
  const Placed before = placed(pool);
  const auto read = parse_placed(to_text(before));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, before);
  pool.ring.scheme.key_namespace.clear();
  pool.ring.replicas = 1;
  EXPECT_EQ(*parse_placed(to_text(placed(pool))), placed(pool));
}

TEST(Placed, KeepsTheOrderOfTheList) {
  const Placed before = of({test::server("b"), test::server("c"), test::server("a")});
  EXPECT_EQ(parse_placed(to_text(before))->servers, before.servers);
}

TEST(Placed, ReadsByTheRulesOfTheConfiguration) {
  const auto read = parse_placed(
      R"({"ring": {"scheme": "clockwise"}, "servers": [{"name": "a", "address": "nowhere"}]})");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::HasSubstr("address: \"nowhere\""));
  EXPECT_FALSE(parse_placed(""));
  EXPECT_FALSE(parse_placed("{\"servers\": []}"));
}

}  // namespace
}  // namespace clockwise::upstream
