#include "runtime/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/way_back.h"
#include "support/pools.h"

namespace clockwise::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using upstream::test::pool;
using upstream::test::server;

config::Config written(std::initializer_list<config::Server> servers) {
  config::Config config;
  config.pools = {pool(servers)};
  return config;
}

upstream::Placed placed(std::initializer_list<config::Server> servers) {
  return upstream::placed(pool(servers));
}

TEST(Overrides, RunInsteadOfWhatIsWritten) {
  const config::Config file = written({server("a"), server("b")});
  Overrides overrides;
  overrides.set(file.pools[0], placed({server("a", 3)}));
  config::Config config = file;
  config.pools[0].timeouts.connect = std::chrono::milliseconds(5);
  EXPECT_THAT(overrides.apply(config), IsEmpty());
  EXPECT_EQ(config.pools[0].servers, placed({server("a", 3)}).servers);
  EXPECT_EQ(config.pools[0].timeouts.connect, std::chrono::milliseconds(5));
}

struct Edit {
  const char* name;
  std::function<void(config::Config&)> edit;
  bool stays;
};

TEST(Overrides, HoldWhileTheFileSaysTheSameOfTheServers) {
  const std::vector<Edit> rows{
      {"nothing", [](config::Config&) {}, true},
      {"the order", [](auto& c) { std::swap(c.pools[0].servers[0], c.pools[0].servers[1]); }, true},
      {"a timeout", [](auto& c) { c.pools[0].timeouts.idle *= 2; }, true},
      {"a guard", [](auto& c) { c.pools[0].max_remap = 1; }, true},
      {"a weight", [](auto& c) { c.pools[0].servers[0].weight = 9; }, false},
      {"an address", [](auto& c) { c.pools[0].servers[0].address.port = 9; }, false},
      {"a new server", [](auto& c) { c.pools[0].servers.push_back(server("z")); }, false},
      {"the ring", [](auto& c) { c.pools[0].ring.scheme.points = 9; }, false},
      {"the source", [](auto& c) { c.pools[0].servers_file = "list.yaml"; }, false},
      {"the pool", [](auto& c) { c.pools.clear(); }, false},
  };
  for (const Edit& row : rows) {
    const config::Config file = written({server("a"), server("b")});
    Overrides overrides;
    overrides.set(file.pools[0], placed({server("c")}));
    config::Config edited = file;
    row.edit(edited);
    const config::Config as_written = edited;
    const auto forgotten = overrides.apply(edited);
    EXPECT_EQ(overrides.empty(), !row.stays) << row.name;
    if (row.stays)
      EXPECT_EQ(edited.pools[0].servers, placed({server("c")}).servers) << row.name;
    else
      EXPECT_EQ(edited, as_written) << row.name;
    EXPECT_EQ(forgotten.size(), row.stays ? 0U : 1U) << row.name;
  }
}

TEST(Overrides, WhatIsAsWrittenIsNone) {
  const config::Config file = written({server("a"), server("b")});
  Overrides overrides;
  overrides.set(file.pools[0], placed({server("c")}));
  EXPECT_FALSE(overrides.empty());
  overrides.set(file.pools[0], placed({server("b"), server("a")}));
  EXPECT_TRUE(overrides.empty());
}

// --- of a server

config::Server drained(const std::string& name) {
  return server(name, 1, config::ServerState::draining);
}

TEST(OverridesOfAServer, HoldWhileTheFileSaysTheSameOfThatServer) {
  const std::vector<Edit> rows{
      {"nothing", [](config::Config&) {}, true},
      {"another server", [](auto& c) { c.pools[0].servers[1].weight = 9; }, true},
      {"a new server", [](auto& c) { c.pools[0].servers.push_back(server("z")); }, true},
      {"the ring", [](auto& c) { c.pools[0].ring.scheme.points = 9; }, true},
      {"its weight", [](auto& c) { c.pools[0].servers[0].weight = 9; }, false},
      {"its address", [](auto& c) { c.pools[0].servers[0].address.port = 9; }, false},
      {"it is gone", [](auto& c) { c.pools[0].servers.erase(c.pools[0].servers.begin()); }, false},
      {"the pool", [](auto& c) { c.pools.clear(); }, false},
  };
  for (const Edit& row : rows) {
    const config::Config file = written({server("a"), server("b")});
    Overrides overrides;
    overrides.set_server(file.pools[0], file.pools[0], drained("a"));
    config::Config edited = file;
    row.edit(edited);
    const config::Config as_written = edited;
    const auto forgotten = overrides.apply(edited);
    if (row.stays) {
      EXPECT_EQ(edited.pools[0].servers[0], drained("a")) << row.name;
      EXPECT_THAT(forgotten, IsEmpty()) << row.name;
    } else {
      EXPECT_EQ(edited, as_written) << row.name;
      EXPECT_THAT(forgotten, ElementsAre("server a of pool pages")) << row.name;
      EXPECT_TRUE(overrides.empty()) << row.name;
    }
  }
}

TEST(OverridesOfAServer, AsWrittenItIsNone) {
  const config::Config file = written({server("a"), server("b")});
  Overrides overrides;
  overrides.set_server(file.pools[0], file.pools[0], drained("a"));
  overrides.set_server(file.pools[0], file.pools[0], server("a"));
  EXPECT_TRUE(overrides.empty());
}

TEST(OverridesOfAServer, ChangesARolledBackPool) {
  const config::Config file = written({server("a"), server("b")});
  Overrides overrides;
  const config::Pool running = pool({server("b"), server("c")});
  overrides.set(file.pools[0], upstream::placed(running));
  overrides.set_server(file.pools[0], running, drained("c"));
  config::Config config = file;
  overrides.apply(config);
  EXPECT_THAT(config.pools[0].servers, ElementsAre(server("b"), drained("c")));
}

TEST(OverridesOfAServer, ARollbackReplacesThem) {
  const config::Config file = written({server("a"), server("b")});
  Overrides overrides;
  overrides.set_server(file.pools[0], file.pools[0], drained("a"));
  overrides.set(file.pools[0], placed({server("a"), server("b")}));
  EXPECT_TRUE(overrides.empty());
}

TEST(WayBack, NamesEachEdit) {
  config::Server labelled = server("e", 2, config::ServerState::draining);
  labelled.label = "old";
  labelled.zone = "z";
  const auto now = pool({server("a"), server("b"), server("c")});
  EXPECT_EQ(
      edits(now, placed({server("a", 2.5), server("c", 1, config::ServerState::down), labelled})),
      "remove b; set the weight of a to 2.5; set the state of c to down; "
      "add e at e:80, weight 2, state draining, label \"old\", zone z");
  EXPECT_EQ(edits(now, placed({server("c"), server("b"), server("a")})), "");
  upstream::Placed other = upstream::placed(now);
  other.ring.scheme.points = 10;
  other.servers[0].address.text = "10.0.0.9:80";
  EXPECT_THAT(edits(now, other),
              testing::StartsWith("set the ring of the pool as it was: {\"ring\""));
}

TEST(WayBack, AHundredEditsAreEnough) {
  config::Pool now = pool({});
  for (int i = 0; i < 150; ++i) now.servers.push_back(server("s" + std::to_string(i)));
  EXPECT_THAT(edits(now, placed({server("s0")})), testing::EndsWith("remove s100; and 49 more"));
}

}  // namespace
}  // namespace clockwise::runtime
