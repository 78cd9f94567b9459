#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <string>

#include "cli/demo_files.h"
#include "cli/demo_view.h"
#include "cli/examples.h"
#include "cli/figures.h"

namespace clockwise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kList[] =
    "# the farm\n"
    "servers:\n"
    "  - {name: cache-1, address: 10.0.0.11:8080, weight: 2}\n"
    "  - {name: cache-2, address: 10.0.0.12:8080}\n"
    "  # - {name: cache-3, address: 10.0.0.13:8080}\n";

TEST(DemoFiles, ServersInCommentsAreNotInTheList) {
  EXPECT_THAT(server_names(kList), ElementsAre("cache-1", "cache-2"));
}

TEST(DemoFiles, TheNextServerContinuesTheFamily) {
  EXPECT_EQ(next_name({"cache-1", "cache-9"}), "cache-10");
  EXPECT_EQ(next_name({"a"}), "a-2");
  EXPECT_EQ(next_name({}), "cache-1");
}

TEST(DemoFiles, CommentIsRemovedFromTheNamedServerOnly) {
  const std::string list = with_comment_removed(kList, "cache-3");
  EXPECT_THAT(list, HasSubstr("\n  - {name: cache-3, address: 10.0.0.13:8080}\n"));
  EXPECT_THAT(list, HasSubstr("# the farm\n"));
  EXPECT_THAT(server_names(list), ElementsAre("cache-1", "cache-2", "cache-3"));
}

TEST(DemoFiles, WeightIsReplacedOrAdded) {
  EXPECT_THAT(with_weight(kList, "cache-1", "3"),
              HasSubstr("{name: cache-1, address: 10.0.0.11:8080, weight: 3}\n"));
  EXPECT_THAT(with_weight(kList, "cache-2", "0.5"),
              HasSubstr("{name: cache-2, address: 10.0.0.12:8080, weight: 0.5}\n"));
}

TEST(DemoFiles, ARemovedServerLeavesTheOthersAlone) {
  EXPECT_THAT(server_names(without(kList, "cache-1")), ElementsAre("cache-2"));
}

TEST(DemoFiles, TheShippedExampleFitsTheDemo) {
  const auto names = server_names(example_upstreams());
  ASSERT_EQ(names.size(), 4u);
  const auto files = demo_files(example_configuration(), example_upstreams(),
                                {.proxy = 18080, .admin = 19901, .servers = {1, 2, 3, 4, 5, 6}});
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_THAT(files->configuration, HasSubstr("127.0.0.1:18080"));
  EXPECT_THAT(files->configuration, HasSubstr("127.0.0.1:19901"));
  EXPECT_THAT(files->configuration, HasSubstr("\naccess_log: off"));
  EXPECT_EQ(server_names(files->upstreams), names);
  EXPECT_THAT(files->upstreams, HasSubstr("# - {name: cache-5, address: 127.0.0.1:5}\n"));
  EXPECT_THAT(files->upstreams, HasSubstr("# - {name: cache-6, address: 127.0.0.1:6}\n"));
  EXPECT_THAT(files->upstreams, Not(HasSubstr("127.0.0.1:808")));
  EXPECT_EQ(server_names(with_comment_removed(files->upstreams, "cache-5")).size(), 5u);
}

TEST(DemoFiles, AnExampleWithoutTheKnownAddressesIsAnError) {
  EXPECT_FALSE(demo_files("workers: 1\n", kList, {.servers = {1, 2, 3}}));
}

TEST(DemoView, NumbersAreGrouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

TEST(DemoView, TableShowsLoadAgainstWeight) {
  const DemoServer half{.name = "a", .state = "active", .expected = 0.5, .load = 0.25};
  const DemoServer full{.name = "b", .state = "draining", .expected = 0.5, .load = 0.5};
  const std::string table = server_table({half, full}, false);
  EXPECT_THAT(table, HasSubstr("################                |  25.0 %"));
  EXPECT_THAT(table, HasSubstr("################################|  50.0 %"));
  EXPECT_THAT(table, HasSubstr("draining"));
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
}

TEST(DemoView, ARemapReadsLikeASentence) {
  const auto remap = boost::json::parse(R"({
    "id": 2, "pool": "pages", "moved_ratio": 0.196, "minimum_ratio": 0.2, "needless_ratio": 0,
    "moves": [{"from": "cache-1", "to": "cache-5", "ratio": 0.196}],
    "servers": [
      {"name": "cache-1", "changes": [], "weight_before": 1, "weight_after": 1, "lost_ratio": 0.196},
      {"name": "cache-5", "changes": ["added"], "weight_before": null, "weight_after": 1,
       "gained_ratio": 0.196}]})");
  EXPECT_EQ(
      remap_in_words(remap.as_object()),
      "added cache-5: 19.6 % of the keys moved to it, minimum 20.0 %, 0 between other servers");
}

}  // namespace
}  // namespace clockwise::cli
