#include "runtime/reloader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace clockwise::runtime {
namespace {

using testing::HasSubstr;
using upstream::Guard;
using upstream::ReloadResult;
using upstream::Trigger;

struct ServerRow {
  std::string name, address = "127.0.0.1:9001";
  double weight = 1;
};

std::vector<ServerRow> numbered(int count) {
  std::vector<ServerRow> rows;
  for (int i = 1; i <= count; ++i) rows.push_back({.name = "s" + std::to_string(i)});
  return rows;
}

std::string yaml(const std::vector<ServerRow>& servers, const std::string& pool_settings = "") {
  std::string text =
      "workers: 1\n"
      "listeners: [{name: web, address: \"127.0.0.1:8080\", pool: pages}]\n"
      "pools:\n"
      "  pages:\n" +
      pool_settings + "    servers:\n";
  for (const ServerRow& row : servers)
    text += "      - {name: " + row.name + ", address: \"" + row.address +
            "\", weight: " + std::to_string(row.weight) + "}\n";
  return text;
}

// A process without sockets: files, names and workers are what the test says.
class ReloaderTest : public testing::Test {
 protected:
  upstream::ReloadOutcome start(const std::string& text) {
    files_["c.yaml"] = text;
    reloader_ = std::make_unique<Reloader>("c.yaml", directory_, world());
    FileMarks marks;
    auto loaded = config::load("c.yaml", marking(world().read, marks), world().environment);
    return reloader_->start(std::get<config::Loaded>(std::move(loaded)), std::move(marks));
  }
  upstream::ReloadOutcome reload(const std::string& text, bool force = false) {
    files_["c.yaml"] = text;
    return reloader_->reload(Trigger::api, force);
  }
  std::uint64_t attempts(ReloadResult result) const {
    const auto reloads = directory_.view().reloads;
    const auto found = reloads.find({Trigger::api, result});
    return found == reloads.end() ? 0 : found->second;
  }
  const upstream::Pool& pages() const { return *adopted_.back().routing->pool("pages"); }

  Reloader::World world() {
    return {
        .read =
            [this](const std::string& path) {
              using Content = std::variant<std::string, std::string>;
              const auto found = files_.find(path);
              if (found == files_.end()) return Content(std::in_place_index<1>, "no such file");
              return Content(std::in_place_index<0>, found->second);
            },
        .environment = [](std::string_view) { return std::nullopt; },
        .override_config = {},
        .lookup =
            [this](const std::set<std::string>& names, std::chrono::milliseconds) {
              HostAddresses found;
              for (const std::string& name : names)
                if (const auto host = hosts_.find(name); host != hosts_.end()) found.insert(*host);
              return found;
            },
        .listen =
            [this](const config::Config&, const config::Listener& listener) {
              if (refused_listener_ == listener.name)
                return Result<proxy::ListenerSpec>(fail("listener " + listener.name + ": in use"));
              proxy::ListenerSpec spec;
              spec.config = listener;
              return Result<proxy::ListenerSpec>(spec);
            },
        .keep_only = [](const auto&) {},
        .open_log =
            [this](const config::Config& config) -> Result<std::shared_ptr<proxy::AccessLog>> {
          ++logs_opened_;
          if (config.access_log && config.access_log->file == "/refused") return fail("refused");
          return std::shared_ptr<proxy::AccessLog>();
        },
        .adopt =
            [this](const proxy::WorkerState& state, std::size_t workers) {
              adopted_workers_ = workers;
              adopted_.push_back(state);
              return Result<void>();
            },
    };
  }

  std::map<std::string, std::string> files_;
  HostAddresses hosts_{{"a.test", {boost::asio::ip::make_address("192.0.2.1")}}};
  std::string refused_listener_;
  std::vector<proxy::WorkerState> adopted_;
  std::size_t adopted_workers_ = 0, logs_opened_ = 0;
  upstream::Directory directory_{2, upstream::WallClock::now()};
  std::unique_ptr<Reloader> reloader_;
};

TEST_F(ReloaderTest, StartIsNotGuardedAndNoRemap) {
  const auto outcome = start(yaml(numbered(4)));
  EXPECT_EQ(outcome.result, ReloadResult::applied);
  EXPECT_EQ(adopted_.size(), 1u);
  EXPECT_EQ(directory_.view().remaps_total, 0u);
  EXPECT_EQ(directory_.view().config_digest, outcome.config_digest);
}

TEST_F(ReloaderTest, AnAddedServerIsARemapThatIsRecordedBeforeTheCallReturns) {
  start(yaml(numbered(4)));
  const auto outcome = reload(yaml(numbered(5)));
  ASSERT_EQ(outcome.result, ReloadResult::applied);
  ASSERT_EQ(outcome.pools.size(), 1u);
  EXPECT_NEAR(outcome.pools[0].moved_ratio, 0.2, 0.05);
  EXPECT_EQ(outcome.pools[0].needless_ratio, 0);
  const upstream::View view = directory_.view();
  ASSERT_EQ(view.history.size(), 1u);
  EXPECT_EQ(view.history[0]->trigger, Trigger::api);
  EXPECT_EQ(view.history[0]->cause, "reload");
  EXPECT_EQ(attempts(ReloadResult::applied), 1u);
  ASSERT_TRUE(pages().watch);
  EXPECT_EQ(pages().watch->now, (std::vector<ring::ServerIndex>{0, 1, 2, 3}));
}

TEST_F(ReloaderTest, TheRingBeforeIsKnownByTheNewIndexes) {
  start(yaml({{"a"}, {"b"}, {"c"}}));
  reload(yaml({{"c"}, {"a"}}));
  EXPECT_EQ(pages().watch->now,
            (std::vector<ring::ServerIndex>{1, upstream::RemapWatch::kGone, 0}));
}

struct Unchanged {
  const char* name;
  std::string text;
};
class SameContent : public ReloaderTest, public testing::WithParamInterface<Unchanged> {};

TEST_P(SameContent, ChangesNothing) {
  start(yaml({{"a"}, {"b"}}));
  const auto outcome = reload(GetParam().text);
  EXPECT_EQ(outcome.result, ReloadResult::unchanged);
  EXPECT_EQ(adopted_.size(), 1u);
  EXPECT_TRUE(outcome.pools.empty());
  EXPECT_EQ(directory_.view().config_digest, outcome.config_digest);
}

INSTANTIATE_TEST_SUITE_P(Reloader, SameContent,
                         testing::Values(Unchanged{"identical", yaml({{"a"}, {"b"}})},
                                         Unchanged{"comment", "# new\n" + yaml({{"a"}, {"b"}})},
                                         Unchanged{"order", yaml({{"b"}, {"a"}})}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(ReloaderTest, IgnoredParametersThatTheKeyDoesNotHaveChangeNothing) {
  const auto with = [](const std::string& ring) {
    return yaml({{"a"}, {"b"}}, "    ring: {" + ring + "}\n");
  };
  start(with("key: '{path}'"));
  const std::string digest = pages().digest;
  EXPECT_EQ(reload(with("key: '{path}', key_ignore: [sid]")).result, ReloadResult::unchanged);
  ASSERT_EQ(reload(with("key: '{uri:normalized}', key_ignore: [a, b]"), true).result,
            ReloadResult::applied);
  EXPECT_NE(pages().digest, digest);
  EXPECT_EQ(reload(with("key: '{uri:normalized}', key_ignore: [b, a, b]")).result,
            ReloadResult::unchanged);
  EXPECT_EQ(directory_.view().remaps_total, 1U);
}

TEST_F(ReloaderTest, ANewAddressIsAppliedWithoutARemap) {
  start(yaml({{"a"}, {"b"}}));
  const auto counters = pages().servers[0].backend;
  const auto outcome = reload(yaml({{"a", "127.0.0.1:9999"}, {"b"}}));
  ASSERT_EQ(outcome.result, ReloadResult::applied);
  ASSERT_EQ(outcome.pools.size(), 1u);
  EXPECT_EQ(outcome.pools[0].moved_ratio, 0);
  EXPECT_EQ(directory_.view().remaps_total, 0u);
  EXPECT_EQ(pages().servers[0].backend, counters);
  EXPECT_EQ(pages().servers[0].config.address.port, 9999);
}

TEST_F(ReloaderTest, SettingsAloneKeepTheRing) {
  start(yaml({{"a"}, {"b"}}));
  const auto ring = pages().ring;
  const auto outcome = reload(yaml({{"a"}, {"b"}}, "    timeouts: {connect: 5s}\n"));
  ASSERT_EQ(outcome.result, ReloadResult::applied);
  EXPECT_TRUE(outcome.pools.empty());
  EXPECT_EQ(pages().ring, ring);
  EXPECT_EQ(pages().config.timeouts.connect, std::chrono::seconds(5));
}

TEST_F(ReloaderTest, ABadFileChangesNothing) {
  start(yaml(numbered(4)));
  const auto outcome = reload("pools: [");
  EXPECT_EQ(outcome.result, ReloadResult::invalid);
  EXPECT_FALSE(outcome.errors.empty());
  EXPECT_EQ(adopted_.size(), 1u);
  EXPECT_FALSE(directory_.view().last_successful);
}

TEST_F(ReloaderTest, AMissingFileIsUnreadableAndStaysWatched) {
  start(yaml(numbered(4)));
  files_.clear();
  EXPECT_EQ(reloader_->reload(Trigger::api, false).result, ReloadResult::unreadable);
  EXPECT_TRUE(reloader_->marks().contains("c.yaml"));
}

TEST_F(ReloaderTest, AFailedTryKnowsTheFilesThatItDidNotReach) {
  files_["list.yaml"] = "servers: [{name: a, address: '10.0.0.1:80'}]\n";
  start(
      "listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
      "pools: {p: {servers_from: {file: list.yaml}}}\n");
  const std::string before = reloader_->marks().at("list.yaml");
  files_["list.yaml"] = "servers: [{name: b, address: '10.0.0.1:80'}]\n";
  EXPECT_EQ(reload("nothing: here\n").result, ReloadResult::invalid);
  EXPECT_NE(reloader_->marks().at("list.yaml"), before);
}

TEST_F(ReloaderTest, AShrinkAboveTheLimitIsRefusedAtEachTryUntilForced) {
  start(yaml(numbered(10)));
  for (std::uint64_t tries = 1; tries <= 2; ++tries) {
    const auto refused = reload(yaml(numbered(4)));
    EXPECT_EQ(refused.result, ReloadResult::refused);
    EXPECT_EQ(refused.refused_by, Guard::max_shrink);
    EXPECT_THAT(refused.message, HasSubstr("max_shrink"));
    ASSERT_EQ(refused.pools.size(), 1u);
    EXPECT_EQ(directory_.view().remaps_refused["pages"], tries);
  }
  EXPECT_EQ(adopted_.size(), 1u);
  const auto forced = reload(yaml(numbered(4)), true);
  EXPECT_EQ(forced.result, ReloadResult::applied);
  EXPECT_TRUE(forced.forced);
  EXPECT_TRUE(directory_.view().history[0]->forced);
}

TEST_F(ReloaderTest, TheWatchersWordOfWhatWasJustTurnedDownIsNoTry) {
  const std::string bad[]{"pools: [", yaml(numbered(4)), ""};  // invalid, refused, unreadable
  start(yaml(numbered(10)));
  for (const std::string& text : bad) {
    files_["c.yaml"] = text;
    if (text.empty()) files_.clear();
    const auto told = reloader_->reload(Trigger::api, false);
    const upstream::View before = directory_.view();
    EXPECT_FALSE(before.last_successful) << text;
    for (const Trigger noticed : {Trigger::watch, Trigger::poll}) {
      const auto echo = reloader_->reload(noticed, false);
      EXPECT_EQ(echo.result, told.result) << text;
      EXPECT_EQ(echo.trigger, Trigger::api) << text;
    }
    const upstream::View after = directory_.view();
    EXPECT_EQ(after.reloads, before.reloads) << text;
    EXPECT_EQ(after.remaps_refused, before.remaps_refused) << text;
    EXPECT_EQ(after.last_reload->trigger, Trigger::api) << text;
    EXPECT_EQ(after.last_attempt, before.last_attempt) << text;

    // Whoever asks is told again.
    EXPECT_EQ(reloader_->reload(Trigger::signal, false).result, told.result) << text;
    EXPECT_EQ(directory_.view().reloads.at({Trigger::signal, told.result}), 1U) << text;
  }
}

TEST_F(ReloaderTest, TheWatcherTriesWhatIsNotTheContentThatWasTurnedDown) {
  const auto notice = [&](const std::string& text) {
    files_["c.yaml"] = text;
    return reloader_->reload(Trigger::watch, false).trigger;
  };
  start(yaml(numbered(4)));
  EXPECT_EQ(reload("pools: [").result, ReloadResult::invalid);
  EXPECT_EQ(notice("pools: {"), Trigger::watch);
  EXPECT_EQ(notice(yaml(numbered(4))), Trigger::watch);
  EXPECT_EQ(notice("pools: {"), Trigger::watch) << "turned down before, but not by the last try";
  EXPECT_EQ(directory_.view().reloads.at({Trigger::watch, ReloadResult::invalid}), 2U);
  EXPECT_EQ(directory_.view().reloads.at({Trigger::watch, ReloadResult::unchanged}), 1U);
}

TEST_F(ReloaderTest, ARemapAboveTheLimitIsRefused) {
  start(yaml(numbered(2)));
  const auto outcome = reload(yaml(numbered(8)));
  EXPECT_EQ(outcome.result, ReloadResult::refused);
  EXPECT_EQ(outcome.refused_by, Guard::max_remap);
}

TEST_F(ReloaderTest, WhatIsAtTheLimitPasses) {
  start(yaml(numbered(2), "    max_remap: 100%\n"));
  EXPECT_EQ(reload(yaml(numbered(1), "    max_remap: 100%\n")).result, ReloadResult::applied);
}

TEST_F(ReloaderTest, PoolsComeAndGoUnguarded) {
  const std::string more =
      yaml(numbered(4)) + "  other:\n    servers: [{name: x, address: \"127.0.0.1:1\"}]\n";
  start(yaml(numbered(4)));
  EXPECT_EQ(reload(more).result, ReloadResult::applied);
  EXPECT_NE(adopted_.back().routing->pool("other"), nullptr);
  const auto outcome = reload(yaml(numbered(4)));
  EXPECT_EQ(outcome.result, ReloadResult::applied);
  EXPECT_EQ(adopted_.back().routing->pool("other"), nullptr);
  EXPECT_EQ(directory_.view().remaps_total, 0u);
}

TEST_F(ReloaderTest, TheAccessLogIsOpenedOnlyWhereItChanges) {
  start(yaml(numbered(4)));
  EXPECT_EQ(logs_opened_, 1u);
  EXPECT_EQ(reload(yaml(numbered(5))).result, ReloadResult::applied);
  EXPECT_EQ(logs_opened_, 1u);
  EXPECT_EQ(reload("access_log: off\n" + yaml(numbered(5))).result, ReloadResult::applied);
  EXPECT_EQ(logs_opened_, 2u);
  const auto refused = reload("access_log: {file: /refused}\n" + yaml(numbered(6)));
  EXPECT_EQ(refused.result, ReloadResult::invalid);
  EXPECT_EQ(reloader_->config().pools[0].servers.size(), 5u);
}

TEST_F(ReloaderTest, TheNumberOfWorkersIsHandedOver) {
  start(yaml(numbered(4)));
  EXPECT_EQ(adopted_workers_, 1u);
  std::string more = yaml(numbered(4));
  more.replace(more.find("workers: 1"), 10, "workers: 2");
  EXPECT_EQ(reload(more).result, ReloadResult::applied);
  EXPECT_EQ(adopted_workers_, 2u);
}

TEST_F(ReloaderTest, WhatNeedsARestartIsSaidAndTheRestApplied) {
  start(yaml(numbered(4)));
  const auto outcome = reload("admin: {address: \"127.0.0.1:1\"}\n" + yaml(numbered(5)));
  EXPECT_EQ(outcome.result, ReloadResult::applied);
  ASSERT_EQ(outcome.not_applied.size(), 1u);
  EXPECT_EQ(outcome.not_applied[0].path, "admin.address");
  EXPECT_EQ(reloader_->config().admin.address.port, 9901);
}

TEST_F(ReloaderTest, AListenerThatCannotBeOpenedChangesNothing) {
  start(yaml(numbered(4)));
  refused_listener_ = "web";
  const auto outcome = reload(yaml(numbered(5)));
  EXPECT_EQ(outcome.result, ReloadResult::invalid);
  EXPECT_THAT(outcome.message, HasSubstr("listener web"));
  EXPECT_EQ(adopted_.size(), 1u);
}

TEST_F(ReloaderTest, AnUnknownNameStopsTheStart) {
  const auto outcome = start(yaml({{"a", "nowhere.test:80"}}));
  EXPECT_EQ(outcome.result, ReloadResult::invalid);
  EXPECT_THAT(outcome.message,
              HasSubstr("pools.pages.servers[0].address: \"nowhere.test:80\" does not resolve"));
  EXPECT_TRUE(adopted_.empty());
}

TEST_F(ReloaderTest, ALazyPoolStartsAndFindsTheNameLater) {
  ASSERT_EQ(start(yaml({{"a", "late.test:80"}}, "    resolve: lazy\n")).result,
            ReloadResult::applied);
  EXPECT_TRUE(pages().servers[0].endpoints.empty());
  EXPECT_TRUE(reloader_->has_unresolved());
  EXPECT_EQ(pages().servers[0].backend->resolve_errors, 1u);
  hosts_["late.test"] = {boost::asio::ip::make_address("192.0.2.9")};
  reloader_->refresh_names(std::chrono::seconds(1));
  EXPECT_EQ(pages().servers[0].endpoints.size(), 1u);
  EXPECT_FALSE(reloader_->has_unresolved());
}

TEST_F(ReloaderTest, ANameThatIsLostKeepsItsAddressesAndIsCounted) {
  start(yaml({{"a", "a.test:80"}, {"b"}}));
  hosts_.clear();
  const auto outcome = reload(yaml({{"a", "a.test:80"}, {"b"}}, "    timeouts: {connect: 5s}\n"));
  EXPECT_EQ(outcome.result, ReloadResult::applied);
  EXPECT_EQ(pages().servers[0].endpoints.size(), 1u);
  EXPECT_EQ(pages().servers[0].backend->resolve_errors, 1u);
}

TEST_F(ReloaderTest, ANewServerWithAnUnknownNameIsInvalid) {
  start(yaml(numbered(4)));
  auto rows = numbered(4);
  rows.push_back({"s5", "nowhere.test:80"});
  EXPECT_EQ(reload(yaml(rows)).result, ReloadResult::invalid);
  EXPECT_EQ(adopted_.size(), 1u);
}

TEST_F(ReloaderTest, ManyReloadsKeepCountersAndABoundedHistory) {
  start(yaml(numbered(4)));
  const auto counters = pages().servers[0].backend;
  for (int i = 0; i < 200; ++i) reload(yaml(numbered(i % 2 == 0 ? 5 : 4)));
  EXPECT_EQ(pages().servers[0].backend, counters);
  EXPECT_EQ(directory_.view().remaps_total, 200u);
  EXPECT_LE(directory_.view().history.size(), 100u);
}

// --- rollback ---------------------------------------------------------------------------------

using upstream::NoWayBack;

class RollbackTest : public ReloaderTest {
 protected:
  // The servers a and b from list.yaml; returns the main file.
  std::string start_from_list() {
    std::string main =
        "listeners: [{name: web, address: '127.0.0.1:0', pool: pages}]\n"
        "pools: {pages: {servers_from: {file: list.yaml}}}\n";
    files_["list.yaml"] =
        "servers: [{name: a, address: '10.0.0.1:80'}, {name: b, address: '10.0.0.2:80'}]\n";
    start(main);
    return main;
  }
  upstream::ReloadOutcome rollback(std::uint64_t id, bool force = false) {
    auto result = reloader_->rollback(id, force);
    if (const auto* none = std::get_if<NoWayBack>(&result)) {
      ADD_FAILURE() << none->message;
      return {};
    }
    return std::get<upstream::ReloadOutcome>(std::move(result));
  }
  NoWayBack no_way_back(std::uint64_t id) {
    auto result = reloader_->rollback(id, true);
    EXPECT_TRUE(std::holds_alternative<NoWayBack>(result));
    return std::holds_alternative<NoWayBack>(result) ? std::get<NoWayBack>(result) : NoWayBack{};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const upstream::Server& server : pages().servers) names.push_back(server.config.name);
    return names;
  }
};

TEST_F(RollbackTest, LeadsBackToTheRingBeforeTheChange) {
  start(yaml({{"a", "127.0.0.1:1", 2}, {"b"}, {"c"}}));
  const std::string digest = pages().digest;
  reload(yaml({{"a", "127.0.0.1:2", 1}, {"c"}, {"d"}}));
  const auto outcome = rollback(1);
  ASSERT_EQ(outcome.result, ReloadResult::applied);
  EXPECT_EQ(outcome.trigger, Trigger::api);
  ASSERT_EQ(outcome.pools.size(), 1U);
  EXPECT_EQ(outcome.pools[0].digest_after, digest);
  EXPECT_EQ(pages().digest, digest);
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(pages().servers[0].config.address.port, 2);  // it runs, and has moved
  const upstream::View view = directory_.view();
  EXPECT_EQ(view.history[0]->id, 2U);
  EXPECT_EQ(view.history[0]->cause, "api");
  EXPECT_EQ(view.remap_totals.at({"pages", "api"}).remaps, 1U);
  EXPECT_EQ(attempts(ReloadResult::applied), 1U);  // no reload
}

TEST_F(RollbackTest, LeadsBackToOtherSettingsOfTheRing) {
  start(yaml(numbered(3), "    ring: {points: 100}\n"));
  const std::string digest = pages().digest;
  ASSERT_EQ(reload(yaml(numbered(3), "    ring: {points: 50}\n"), true).result,
            ReloadResult::applied);
  EXPECT_EQ(rollback(1, true).result, ReloadResult::applied);
  EXPECT_EQ(pages().digest, digest);
  EXPECT_EQ(directory_.view().written->pools[0].ring.scheme.points, 50U);
}

TEST_F(RollbackTest, AddressesStayWhereTheyAreByNow) {
  start(yaml({{"a", "127.0.0.1:1"}, {"b", "127.0.0.1:2"}, {"c", "127.0.0.1:3"}}));
  reload(yaml({{"a", "127.0.0.1:1"}, {"c", "127.0.0.1:3"}, {"d", "127.0.0.1:4"}}));
  const std::string moved =
      yaml({{"a", "127.0.0.1:11"}, {"c", "127.0.0.1:13"}, {"d", "127.0.0.1:14"}});
  ASSERT_EQ(reload(moved).result, ReloadResult::applied);
  const auto addresses = [&] {
    std::map<std::string, std::uint16_t> ports;
    for (const upstream::Server& server : pages().servers)
      ports[server.config.name] = server.config.address.port;
    return ports;
  };
  using Ports = std::map<std::string, std::uint16_t>;
  const auto outcome = rollback(1);
  ASSERT_EQ(outcome.result, ReloadResult::applied);
  // b is nowhere else to be found.
  EXPECT_EQ(addresses(), (Ports{{"a", 11}, {"b", 2}, {"c", 13}}));
  for (const upstream::ServerReport& server : outcome.pools[0].servers)
    EXPECT_THAT(server.changes, testing::Not(testing::Contains("address"))) << server.name;

  // d does not run, but the file says where it is: not where it was when it came.
  ASSERT_EQ(rollback(2).result, ReloadResult::applied);
  EXPECT_EQ(addresses(), (Ports{{"a", 11}, {"c", 13}, {"d", 14}}));
  EXPECT_EQ(directory_.view().written, directory_.view().config);
}

TEST_F(RollbackTest, ZonesStayAsTheyAreByNow) {
  const auto zones = [](const std::string& zone, const std::string& more) {
    return "listeners: [{name: web, address: '127.0.0.1:0', pool: pages}]\n"
           "pools: {pages: {servers: [{name: a, address: '127.0.0.1:1', zone: " +
           zone + "}, {name: b, address: '127.0.0.1:1'}" + more + "]}}\n";
  };
  start(zones("old", ""));
  reload(zones("old", ", {name: c, address: '127.0.0.1:1'}"));
  reload(zones("new", ", {name: c, address: '127.0.0.1:1'}"));
  ASSERT_EQ(rollback(1).result, ReloadResult::applied);
  EXPECT_EQ(pages().servers[0].config.zone, "new");
}

TEST_F(RollbackTest, OtherSettingsOfThePoolStay) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5), "    timeouts: {connect: 5s}\n    max_remap: 70%\n"));
  rollback(1);
  EXPECT_EQ(pages().config.timeouts.connect, std::chrono::seconds(5));
  EXPECT_EQ(pages().config.max_remap, 0.7);
}

TEST_F(RollbackTest, CanItselfBeRolledBack) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5)));
  const std::string digest = pages().digest;
  rollback(1);
  EXPECT_FALSE(directory_.view().written == directory_.view().config);
  EXPECT_EQ(rollback(2).result, ReloadResult::applied);
  EXPECT_EQ(pages().digest, digest);
  EXPECT_EQ(directory_.view().written, directory_.view().config);  // nothing is overridden
}

TEST_F(RollbackTest, TheSameRingIsUnchanged) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5)));
  rollback(1);
  const auto again = rollback(1);
  EXPECT_EQ(again.result, ReloadResult::unchanged);
  EXPECT_TRUE(again.pools.empty());
  EXPECT_EQ(directory_.view().remaps_total, 2U);
}

TEST_F(RollbackTest, StandsUnderTheGuards) {
  start(yaml(numbered(4)));
  ASSERT_EQ(reload(yaml(numbered(12)), true).result, ReloadResult::applied);
  const auto refused = rollback(1);
  EXPECT_EQ(refused.result, ReloadResult::refused);
  EXPECT_EQ(refused.refused_by, Guard::max_shrink);
  EXPECT_THAT(refused.message, HasSubstr("a forced rollback of change 1 applies it"));
  EXPECT_EQ(directory_.view().remaps_refused["pages"], 1U);
  EXPECT_EQ(names().size(), 12U);
  EXPECT_EQ(rollback(1, true).result, ReloadResult::applied);
  EXPECT_TRUE(directory_.view().history[0]->forced);
}

TEST_F(RollbackTest, AReloadOfTheSameServersKeepsIt) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5)));
  rollback(1);
  EXPECT_EQ(reload("# saved again\n" + yaml(numbered(5))).result, ReloadResult::unchanged);
  const auto outcome = reload(yaml(numbered(5), "    timeouts: {connect: 5s}\n"));
  EXPECT_EQ(outcome.result, ReloadResult::applied);
  EXPECT_TRUE(outcome.pools.empty());
  EXPECT_EQ(names().size(), 4U);
}

TEST_F(RollbackTest, AReloadOfOtherServersReplacesIt) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5)));
  rollback(1);
  const auto outcome = reload(yaml(numbered(6)));
  EXPECT_EQ(outcome.result, ReloadResult::applied);
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_THAT(outcome.notes[0], HasSubstr("pool pages"));
  EXPECT_EQ(names().size(), 6U);
  EXPECT_EQ(directory_.view().written, directory_.view().config);
}

TEST_F(RollbackTest, AFileThatSaysTheSameAsTheRollbackEndsItUnchanged) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5)));
  rollback(1);
  EXPECT_EQ(reload(yaml(numbered(4))).result, ReloadResult::unchanged);
  EXPECT_EQ(directory_.view().written, directory_.view().config);
  EXPECT_EQ(names().size(), 4U);
}

TEST_F(RollbackTest, ARefusedReloadKeepsIt) {
  start(yaml(numbered(4)));
  reload(yaml(numbered(5)));
  rollback(1);
  EXPECT_EQ(reload(yaml(numbered(40))).result, ReloadResult::refused);
  EXPECT_EQ(reload(yaml(numbered(5))).result, ReloadResult::unchanged);
  EXPECT_EQ(names().size(), 4U);
}

TEST_F(RollbackTest, NewAddressesOfNamesKeepIt) {
  start(yaml({{"a", "a.test:80"}, {"b"}, {"c"}}));
  reload(yaml({{"a", "a.test:80"}, {"b"}, {"c"}, {"d"}}));
  rollback(1);
  hosts_["a.test"] = {boost::asio::ip::make_address("192.0.2.7")};
  reloader_->refresh_names(std::chrono::seconds(1));
  EXPECT_NE(directory_.view().written, directory_.view().config);
  EXPECT_EQ(names().size(), 3U);
}

TEST_F(RollbackTest, ANameThatIsGoneRefusesItWithoutAPlaceInTheFile) {
  start(yaml({{"a", "a.test:80"}, {"b"}, {"c"}}));
  reload(yaml({{"b"}, {"c"}}));
  hosts_.clear();
  const auto outcome = rollback(1);
  EXPECT_EQ(outcome.result, ReloadResult::invalid);
  EXPECT_EQ(outcome.message, "pools.pages.servers[0].address: \"a.test:80\" does not resolve");
  EXPECT_EQ(outcome.errors.at(0).position.line, 0U);
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(RollbackTest, ThereIsNoWayBackToWhatIsNotKnown) {
  start(yaml(numbered(4)));
  EXPECT_EQ(no_way_back(1).why, NoWayBack::Why::unknown_change);
  reload(yaml(numbered(5)));
  EXPECT_EQ(no_way_back(0).why, NoWayBack::Why::unknown_change);
  EXPECT_EQ(no_way_back(2).why, NoWayBack::Why::unknown_change);
}

TEST_F(RollbackTest, NorForAPoolThatIsGone) {
  const std::string pool = "  other:\n    servers: [{name: x, address: \"127.0.0.1:1\"}";
  start(yaml(numbered(4)) + pool + "]\n");
  reload(yaml(numbered(4)) + pool + ", {name: y, address: \"127.0.0.1:1\"}]\n");
  reload(yaml(numbered(4)));
  const NoWayBack none = no_way_back(1);
  EXPECT_EQ(none.why, NoWayBack::Why::pool_gone);
  EXPECT_THAT(none.message, HasSubstr("pool other"));
}

TEST_F(RollbackTest, NorForAListInAFileWhichSaysWhatToEdit) {
  const std::string main = start_from_list();
  files_["list.yaml"] =
      "servers: [{name: a, address: '10.0.0.1:80', weight: 2}, {name: c, address: "
      "'10.0.0.3:80'}]\n";
  ASSERT_EQ(reload(main, true).result, ReloadResult::applied);
  const NoWayBack none = no_way_back(1);
  EXPECT_EQ(none.why, NoWayBack::Why::from_file);
  EXPECT_EQ(none.message,
            "pool pages has its servers from \"list.yaml\", and that file would undo a rollback: "
            "edit it: remove c; set the weight of a to 1; add b at 10.0.0.2:80, weight 1");
}

TEST_F(RollbackTest, WhatWasSetAtRunTimeIsNoEditOfTheFile) {
  (void)start_from_list();
  const upstream::ServerChange drain{
      .pool = "pages", .server = "a", .state = config::ServerState::draining, .weight = {}};
  const auto drained = reloader_->change_server(drain, true);
  ASSERT_EQ(std::get<upstream::ReloadOutcome>(drained).result, ReloadResult::applied);
  EXPECT_THAT(no_way_back(1).message,
              testing::EndsWith("it says the same already; what a PUT set at run time stays until "
                                "a PUT sets it back"));
}

struct Edit {
  const char* name;
  std::string ring, before, after, edits;
};
class Edits : public RollbackTest, public testing::WithParamInterface<Edit> {};

TEST_P(Edits, AreWhatLeadsBackToTheRing) {
  const auto list = [](const std::string& servers) { return "servers: [" + servers + "]\n"; };
  const std::string main =
      "listeners: [{name: web, address: '127.0.0.1:0', pool: pages}]\n"
      "pools: {pages: {ring: {" +
      GetParam().ring + "}, servers_from: {file: list.yaml}}}\n";
  files_["list.yaml"] = list(GetParam().before);
  start(main);
  files_["list.yaml"] = list(GetParam().after);
  ASSERT_EQ(reload(main, true).result, ReloadResult::applied);
  EXPECT_THAT(no_way_back(1).message,
              testing::EndsWith("would undo a rollback: edit it: " + GetParam().edits));
}

// Three servers by their number.
const std::string k1 = "{name: a, address: '10.0.0.1:80'}",
                  k2 = "{name: b, address: '10.0.0.2:80'}",
                  k3 = "{name: c, address: '10.0.0.3:80'}";

INSTANTIATE_TEST_SUITE_P(
    Rollback, Edits,
    testing::Values(Edit{"no_address", "scheme: clockwise", k1 + ", " + k2,
                         "{name: a, address: '10.9.9.9:80'}", "add b at 10.0.0.2:80, weight 1"},
                    Edit{"no_order_where_it_means_nothing", "scheme: clockwise",
                         k1 + ", " + k2 + ", " + k3, k3 + ", " + k1,
                         "add b at 10.0.0.2:80, weight 1"},
                    Edit{"order_alone", "scheme: modulo", k1 + ", " + k2 + ", " + k3,
                         k2 + ", " + k1 + ", " + k3, "set the order of the servers to a, b, c"},
                    Edit{"order_after_additions", "scheme: nginx-hash", k1 + ", " + k2 + ", " + k3,
                         k1 + ", " + k3,
                         "add b at 10.0.0.2:80, weight 1; set the order of the servers to a, b, c"},
                    Edit{"additions_that_bring_the_order", "scheme: nginx-hash",
                         k1 + ", " + k2 + ", " + k3, k1 + ", " + k2,
                         "add c at 10.0.0.3:80, weight 1"},
                    Edit{"automatic_ids", "scheme: haproxy", k1 + ", " + k2, k2 + ", " + k1,
                         "set the order of the servers to a, b"},
                    Edit{"an_id_that_was_automatic", "scheme: haproxy", k1 + ", " + k2,
                         "{name: a, address: '10.0.0.1:80', id: 7}, " + k2, "remove the id of a"},
                    Edit{"modula", "scheme: twemproxy, distribution: modula", k1 + ", " + k2,
                         k2 + ", " + k1, "set the order of the servers to a, b"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(RollbackTest, ReachesWhatAnEarlierProcessChanged) {
  start(yaml(numbered(4)));
  const std::string digest = pages().digest;
  reload(yaml(numbered(5)));
  const std::string text = upstream::history_text(directory_.view().history, 1);

  upstream::Directory later{1, upstream::WallClock::now()};
  later.restore(*upstream::parse_history(text));
  Reloader reloader("c.yaml", later, world());
  FileMarks marks;
  auto loaded = config::load("c.yaml", marking(world().read, marks), world().environment);
  reloader.start(std::get<config::Loaded>(std::move(loaded)), std::move(marks));
  EXPECT_EQ(later.view().last_remap.at("pages")->id, 1U);
  const auto result = reloader.rollback(1, false);
  EXPECT_EQ(std::get<upstream::ReloadOutcome>(result).result, ReloadResult::applied);
  EXPECT_EQ(pages().digest, digest);
  EXPECT_EQ(later.view().history[0]->id, 2U);
  EXPECT_EQ(later.view().remaps_total, 1U);
}

// --- guards -----------------------------------------------------------------------------------

TEST_F(ReloaderTest, TheLimitIsTheOneOfTheNewFile) {
  start(yaml(numbered(2)));
  EXPECT_EQ(reload(yaml(numbered(8), "    max_remap: 80%\n")).result, ReloadResult::applied);
  EXPECT_EQ(reload(yaml(numbered(9), "    max_remap: 1%\n")).result, ReloadResult::refused);
}

TEST_F(ReloaderTest, APoolThatIsReplacedByAnotherNameIsNotGuarded) {
  start(yaml(numbered(4)));
  std::string renamed = yaml(numbered(1));
  renamed.replace(renamed.find("pool: pages"), 11, "pool: sites");
  renamed.replace(renamed.find("  pages:"), 8, "  sites:");
  EXPECT_EQ(reload(renamed).result, ReloadResult::applied);
}

TEST_F(ReloaderTest, AnotherHashOrTagGivesKeysOtherPositions) {
  start(yaml(numbered(3)));
  reload(yaml(numbered(4)));
  EXPECT_TRUE(pages().watch->same_positions);
  for (const std::string ring : {"{scheme: nginx}", "{scheme: nginx, hash_tag: \"{}\"}"}) {
    ASSERT_EQ(reload(yaml(numbered(4), "    ring: " + ring + "\n"), true).result,
              ReloadResult::applied);
    EXPECT_FALSE(pages().watch->same_positions) << ring;
  }
}

// Of a single server nothing moves, whatever it is placed by.
TEST_F(ReloaderTest, AChangeThatIsStillCountedKnowsThatKeysHaveOtherPositionsThoughNoneMoved) {
  for (const std::string ring : {"{scheme: clockwise}", "{scheme: ketama, hash_tag: \"{}\"}"}) {
    start(yaml(numbered(2), "    ring: {scheme: ketama}\n"));
    reload(yaml(numbered(1), "    ring: {scheme: ketama}\n"), true);
    const auto previous = pages().watch->previous;
    EXPECT_TRUE(pages().watch->same_positions);
    const auto outcome = reload(yaml(numbered(1), "    ring: " + ring + "\n"), true);
    ASSERT_EQ(outcome.result, ReloadResult::applied);
    ASSERT_NE(pages().watch, nullptr) << ring;
    EXPECT_EQ(pages().watch->previous, previous) << ring;
    EXPECT_FALSE(pages().watch->same_positions) << ring;
    reload(yaml(numbered(1), "    ring: {scheme: ketama}\n"), true);
    EXPECT_FALSE(pages().watch->same_positions) << "it has been different meanwhile";
  }
}

}  // namespace
}  // namespace clockwise::runtime
