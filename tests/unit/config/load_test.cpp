// A whole configuration: what a good one becomes.
#include "config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/configs.h"

namespace clockwise::config {
namespace {

using namespace std::chrono_literals;
using test::Files;
using test::kSmall;
using test::loaded;

TEST(Load, ASmallFileHasTheDefaults) {
  const Loaded result = loaded(kSmall);
  ASSERT_EQ(result.config.listeners.size(), 1U);
  const Listener& web = result.config.listeners[0];
  EXPECT_EQ(web.name, "web");
  EXPECT_EQ(web.address, (Address{"0.0.0.0:8080", "0.0.0.0", 8080, ""}));
  EXPECT_EQ(web.pool, "pages");
  EXPECT_EQ(web.limits, Limits{});
  EXPECT_EQ(web.timeouts, ListenerTimeouts{});
  EXPECT_EQ(web.forwarded, Forwarded{});
  ASSERT_EQ(result.config.pools.size(), 1U);
  Pool expected;
  expected.name = "pages";
  expected.servers.resize(1);
  expected.servers[0].name = "cache-1";
  expected.servers[0].address = {"10.0.0.11:8080", "10.0.0.11", 8080, ""};
  EXPECT_EQ(result.config.pools[0], expected);
  EXPECT_EQ(result.config.access_log, AccessLog{});
  EXPECT_GE(result.config.workers, 1U);
  EXPECT_TRUE(result.warnings.empty());
}

TEST(Load, UpstreamFilesAreFoundBesideTheMainFile) {
  Files files;
  files["etc/main.yaml"] =
      "listeners: [{name: web, address: '[::]:80', pool: pages}]\n"
      "pools: {pages: {servers_from: {file: sub/upstreams.yaml}}}\n";
  files["etc/sub/upstreams.yaml"] =
      "servers: [{name: a, address: 'unix:/run/a.sock', weight: 0.5}]\n";
  const Loaded result = loaded(files, "etc/main.yaml");
  EXPECT_THAT(result.files, testing::ElementsAre("etc/main.yaml", "etc/sub/upstreams.yaml"));
  ASSERT_EQ(result.config.pools[0].servers.size(), 1U);
  EXPECT_EQ(result.config.pools[0].servers[0].address.path, "/run/a.sock");
  EXPECT_EQ(result.config.pools[0].servers[0].weight, 0.5);
  EXPECT_EQ(result.config.pools[0].servers_file, "etc/sub/upstreams.yaml");
}

}  // namespace
}  // namespace clockwise::config
