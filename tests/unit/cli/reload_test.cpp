#include <gmock/gmock.h>

#include "admin/server.h"
#include "cli/cli.h"

namespace clockwise::cli {
namespace {

using testing::HasSubstr;
using upstream::ReloadOutcome;
using upstream::ReloadResult;

// A proxy that answers each reload with what the test wants.
class ReloadCommand : public testing::Test {
 protected:
  void SetUp() override {
    outcome.trigger = upstream::Trigger::api;
    config::Admin admin;
    admin.address = {"127.0.0.1:0", "127.0.0.1", 0, {}};
    admin.token = "secret";
    const auto bound = server.start(admin);
    ASSERT_TRUE(bound);
    options.admin = "http://" + bound->text;
    options.token = "secret";
  }

  int run() {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = reload(options);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  ReloadOutcome outcome;
  bool forced = false;
  upstream::Directory directory{1, upstream::WallClock::now()};
  admin::AdminServer server{directory,
                            {.reload = [this](upstream::Trigger, bool force, const auto& done) {
                              forced = force;
                              done(outcome);
                            }}};
  ReloadOptions options;
  std::string out, err;
};

TEST_F(ReloadCommand, PrintsWhatMoved) {
  outcome.result = ReloadResult::applied;
  outcome.pools.resize(1);
  outcome.pools[0].pool = "pages";
  outcome.pools[0].moved_ratio = 0.196;
  outcome.pools[0].minimum_ratio = 0.2;
  outcome.pools[0].servers.resize(2);
  outcome.pools[0].servers[0].name = "a";
  outcome.pools[0].servers[1].name = "e";
  outcome.pools[0].moves = {{0, 1, 0.196}};
  outcome.not_applied = {{"workers", "needs a restart"}};
  EXPECT_EQ(run(), kOk);
  EXPECT_THAT(out, HasSubstr("pool pages: 19.6 % of the keys moved, minimum 20.0 %"));
  EXPECT_THAT(out, HasSubstr("19.60 %  a -> e"));
  EXPECT_THAT(out, HasSubstr("not applied: workers: needs a restart"));
}

TEST_F(ReloadCommand, PrintsOnlyTheDocumentWhenAskedForJson) {
  options.json = true;
  options.force = true;
  EXPECT_EQ(run(), kOk);
  EXPECT_TRUE(out.starts_with(R"({"result": "unchanged")")) << out;
  EXPECT_TRUE(forced);
}

TEST_F(ReloadCommand, NamesThePlaceOfEveryError) {
  outcome.result = ReloadResult::invalid;
  outcome.errors = {{{"c.yaml", 3, 1}, "one", ""}, {{"c.yaml", 9, 4}, "two", ""}};
  EXPECT_EQ(run(), kError);
  EXPECT_EQ(err, "c.yaml:3:1: one\nc.yaml:9:4: two\n");
}

TEST_F(ReloadCommand, ToldApartWhenAGuardRefuses) {
  outcome.result = ReloadResult::refused;
  outcome.pools.resize(1);
  outcome.pools[0].pool = "pages";
  outcome.pools[0].moved_ratio = 0.831;
  outcome.pools[0].max_remap = 0.6;
  outcome.pools[0].refused_by = upstream::Guard::max_remap;
  EXPECT_EQ(run(), kRefused);
  EXPECT_EQ(err, "pool pages: 83.1 % of the keys would move, max_remap is 60.0 %\n");
  EXPECT_THAT(out, HasSubstr("pool pages: 83.1 % of the keys would move"));
}

TEST_F(ReloadCommand, WrongTokenIsAnError) {
  options.token = "other";
  EXPECT_EQ(run(), kError);
  EXPECT_THAT(err, HasSubstr("Authorization"));
}

TEST_F(ReloadCommand, NobodyThereIsAnError) {
  server.stop();
  EXPECT_EQ(run(), kError);
  EXPECT_THAT(err, HasSubstr("cannot reach the proxy at http://127.0.0.1:"));
}

TEST_F(ReloadCommand, MalformedAddressIsAnError) {
  for (const char* url : {"https://127.0.0.1:1", "http://", "unix:"}) {
    options.admin = url;
    EXPECT_EQ(run(), kError);
    EXPECT_THAT(err, HasSubstr(" is not ")) << url;
  }
}

}  // namespace
}  // namespace clockwise::cli
