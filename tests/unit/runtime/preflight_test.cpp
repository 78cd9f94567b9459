#include "runtime/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clockwise::runtime {
namespace {

using testing::ElementsAre;

class Preflight : public testing::Test {
 protected:
  std::vector<std::string> problems(const std::string& main, const std::string& list = "") {
    const config::FileReader read = [&](const std::string& path) {
      return std::variant<std::string, std::string>(std::in_place_index<0>,
                                                    path == "c.yaml" ? main : list);
    };
    const auto loaded = config::load("c.yaml", read, [](std::string_view) { return std::nullopt; });
    const auto lookup = [](const std::set<std::string>& names, std::chrono::milliseconds) {
      HostAddresses found;
      if (names.contains("here.test"))
        found["here.test"] = {boost::asio::ip::make_address("192.0.2.1")};
      return found;
    };
    std::vector<std::string> lines;
    for (const auto& problem :
         preflight("c.yaml", std::get<config::Loaded>(loaded).config, read, lookup))
      lines.push_back(problem.headline());
    return lines;
  }
};

TEST_F(Preflight, NamesEveryNameThatHasToResolveWithItsPlace) {
  EXPECT_THAT(
      problems("admin: {address: 'lost.test:9901'}\n"
               "listeners:\n"
               "  - {name: web, address: 'here.test:80', pool: p}\n"
               "  - {name: two, address: 'gone.test:80', pool: p}\n"
               "pools:\n"
               "  p:\n"
               "    servers:\n"
               "      - {name: a, address: 'here.test:80'}\n"
               "      - {name: b, address: 'nowhere.test:80'}\n"
               "  lazy: {resolve: lazy, servers: [{name: a, address: 'nowhere.test:80'}]}\n"
               "access_log: off\n"),
      ElementsAre("c.yaml:9:28: pools.p.servers[1].address: \"nowhere.test:80\" does not resolve",
                  "c.yaml:1:18: admin.address: \"lost.test:9901\" does not resolve",
                  "c.yaml:4:26: listeners[1].address: \"gone.test:80\" does not resolve"));
}

TEST_F(Preflight, FindsTheNameInTheUpstreamFile) {
  EXPECT_THAT(
      problems("listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
               "pools: {p: {servers_from: {file: list.yaml}}}\n",
               "servers:\n  - {name: a, address: 'nowhere.test:80'}\n"),
      ElementsAre("list.yaml:2:24: servers[0].address: \"nowhere.test:80\" does not resolve"));
}

TEST_F(Preflight, NamesAnAccessLogThatCannotBeWritten) {
  const std::string rest =
      "listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
      "pools: {p: {servers: [{name: a, address: '10.0.0.1:80'}]}}\n";
  EXPECT_THAT(problems(rest + "access_log: {file: /dev/null}\n"), ElementsAre());
  EXPECT_THAT(problems(rest + "access_log: {file: /nowhere/access.log}\n"),
              ElementsAre("c.yaml:3:20: access_log.file: cannot open /nowhere/access.log: No such "
                          "file or directory"));
}

}  // namespace
}  // namespace clockwise::runtime
