// Ports, descriptor limits, names and what waits for a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "runtime/effective.h"
#include "runtime/limits.h"
#include "runtime/ports.h"
#include "runtime/resolver.h"

namespace clockwise::runtime {
namespace {

using boost::asio::ip::tcp;
using testing::HasSubstr;

config::Address loopback(std::uint16_t port) {
  return {
      .text = "127.0.0.1:" + std::to_string(port), .host = "127.0.0.1", .port = port, .path = {}};
}

config::Listener listener_on(const config::Address& address, std::string name = "web") {
  config::Listener listener;
  listener.name = std::move(name);
  listener.address = address;
  listener.pool = "pages";
  return listener;
}

TEST(Ports, PortZeroTakesAFreePortAndKeepsIt) {
  Ports ports;
  const auto listener = listener_on(loopback(0));
  const auto taken = ports.hold(listener, {});
  ASSERT_TRUE(taken.has_value());
  EXPECT_NE(taken->port, 0);
  EXPECT_EQ(taken->text, "127.0.0.1:" + std::to_string(taken->port));
  EXPECT_EQ(ports.hold(listener, {}).value(), *taken);
}

TEST(Ports, AFixedPortPassesToAnotherListener) {
  Ports ports;
  const auto free = ports.hold(listener_on(loopback(0)), {}).value();
  ports.keep_only({});
  const auto first = listener_on(free, "first");
  const auto second = listener_on(free, "second");
  ASSERT_TRUE(ports.hold(first, {}).has_value());
  EXPECT_TRUE(ports.hold(second, {}).has_value());
  ports.keep_only({second});
  EXPECT_TRUE(ports.hold(second, {}).has_value());
}

TEST(Ports, EachListenerHasAFreePortOfItsOwn) {
  Ports ports;
  const auto first = ports.hold(listener_on(loopback(0), "first"), {}).value();
  const auto second = ports.hold(listener_on(loopback(0), "second"), {}).value();
  EXPECT_NE(first.port, second.port);
}

TEST(Ports, APortInUseIsOneClearLine) {
  boost::asio::io_context io;
  tcp::acceptor other(io, {boost::asio::ip::address_v4::loopback(), 0});
  Ports ports;
  const auto held = ports.hold(listener_on(loopback(other.local_endpoint().port())), {});
  ASSERT_FALSE(held.has_value());
  EXPECT_THAT(held.error().message, HasSubstr("listener web: cannot listen on 127.0.0.1:"));
  EXPECT_THAT(held.error().message, HasSubstr("in use"));
}

TEST(Ports, APortSharedByAnotherProcessOfTheSameUserIsInUse) {
  boost::asio::io_context io;
  tcp::acceptor other(io);
  other.open(tcp::v4());
  const int on = 1;
  ::setsockopt(other.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  other.bind({boost::asio::ip::address_v4::loopback(), 0});
  other.listen();
  Ports ports;
  EXPECT_FALSE(ports.hold(listener_on(loopback(other.local_endpoint().port())), {}).has_value());
}

TEST(Ports, AHeldPortLetsWorkersListen) {
  Ports ports;
  const auto taken = ports.hold(listener_on(loopback(0)), {}).value();
  boost::asio::io_context io;
  const int on = 1;
  std::vector<tcp::acceptor> workers;
  for (int i = 0; i < 2; ++i) {
    tcp::acceptor& acceptor = workers.emplace_back(io);
    acceptor.open(tcp::v4());
    ::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    acceptor.bind({boost::asio::ip::address_v4::loopback(), taken.port});
    acceptor.listen();
  }
  tcp::socket client(io);
  client.connect({boost::asio::ip::address_v4::loopback(), taken.port});
}

TEST(Ports, AnUnknownNameIsSaid) {
  Ports ports;
  config::Address address{
      .text = "nowhere.invalid:80", .host = "nowhere.invalid", .port = 80, .path = {}};
  const auto held = ports.hold(listener_on(address), {});
  ASSERT_FALSE(held.has_value());
  EXPECT_THAT(held.error().message, HasSubstr("does not resolve"));
}

TEST(DescriptorLimit, SplitsWhatIsLeft) {
  const std::uint32_t one = automatic_connections(10'000, 3, 1, 1).value();
  const std::uint32_t four = automatic_connections(10'000, 3, 2, 2).value();
  EXPECT_GT(one, 4'500u);
  EXPECT_LE(one * 2, 10'000u);
  EXPECT_NEAR(four, one / 4, 20);
}

TEST(DescriptorLimit, TooFewIsAnErrorThatSaysHowMany) {
  const auto connections = automatic_connections(64, 3, 2, 1);
  ASSERT_FALSE(connections.has_value());
  EXPECT_THAT(connections.error().message, HasSubstr("open files is 64"));
}

TEST(DescriptorLimit, KeepsSomeFromClientsAndFewerFromServers) {
  const DescriptorShares shares = descriptor_shares(1024, 2);
  EXPECT_LT(shares.clients, shares.servers);
  EXPECT_LT(shares.servers, 1024 - 16);
  EXPECT_GT(shares.clients, static_cast<int>(automatic_connections(1024, 3, 2, 1).value()));
  EXPECT_EQ(descriptor_shares(10, 1).clients, 0);
  EXPECT_GT(descriptor_shares(std::uint64_t{1} << 40U, 1).clients, 1'000'000);
}

TEST(Names, NumericAddressesNeedNoLookup) {
  EXPECT_FALSE(host_name(loopback(80)));
  EXPECT_FALSE(host_name({.text = "[::1]:80", .host = "::1", .port = 80, .path = {}}));
  EXPECT_FALSE(host_name({.text = "unix:/run/a", .host = {}, .port = 0, .path = "/run/a"}));
  EXPECT_EQ(host_name({.text = "a.test:80", .host = "a.test", .port = 80, .path = {}}), "a.test");
  EXPECT_EQ(endpoints(loopback(80), {}).size(), 1u);
}

TEST(Names, ResolveWithinThePatience) {
  Resolver resolver;
  const HostAddresses found =
      resolver.lookup({"localhost", "nowhere.invalid"}, std::chrono::seconds(10));
  EXPECT_TRUE(found.contains("localhost"));
  EXPECT_FALSE(found.contains("nowhere.invalid"));
}

TEST(Names, GivingUpEndsEveryLookup) {
  Resolver resolver;
  resolver.give_up();
  EXPECT_TRUE(resolver.lookup({"localhost"}, std::chrono::hours(1)).empty());
}

config::Config running() {
  config::Config config;
  config.listeners = {listener_on(loopback(8080)), listener_on(loopback(8081), "second")};
  config.pools.resize(1);
  config.pools[0].name = "pages";
  config.pools[0].servers.resize(2);
  config.pools[0].servers[0].name = "a";
  config.pools[0].servers[1].name = "b";
  return config;
}

struct LeftRow {
  const char* name;
  std::function<void(config::Config&)> change;
  std::vector<std::string> paths;
};

class UntilRestart : public testing::TestWithParam<LeftRow> {};

TEST_P(UntilRestart, SaysWhatItCouldNotApply) {
  config::Config asked = running();
  GetParam().change(asked);
  const Effective effective = keep_until_restart(running(), asked, 8);
  std::vector<std::string> paths;
  for (const auto& left : effective.not_applied) paths.push_back(left.path);
  EXPECT_EQ(paths, GetParam().paths);
}

INSTANTIATE_TEST_SUITE_P(
    Effective, UntilRestart,
    testing::Values(LeftRow{"nothing", [](auto&) {}, {}},
                    LeftRow{"workers_are_live", [](auto& c) { c.workers = 8; }, {}},
                    LeftRow{"too_many_workers", [](auto& c) { c.workers = 9; }, {"workers"}},
                    LeftRow{"user", [](auto& c) { c.user = "nobody"; }, {"user"}},
                    LeftRow{"state_dir", [](auto& c) { c.state_dir = "/x"; }, {"state_dir"}},
                    LeftRow{
                        "admin", [](auto& c) { c.admin.address = loopback(1); }, {"admin.address"}},
                    LeftRow{"token_is_live", [](auto& c) { c.admin.token = "secret"; }, {}},
                    LeftRow{"access_log_is_live", [](auto& c) { c.access_log.reset(); }, {}},
                    LeftRow{"timeouts_are_live",
                            [](auto& c) { c.listeners[0].timeouts.idle = std::chrono::seconds(1); },
                            {}},
                    LeftRow{"listeners_are_live", [](auto& c) { c.listeners.pop_back(); }, {}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(UntilRestart, AnotherUserOpensNoMoreSocketsOnTheSamePorts) {
  config::Config now = running();
  now.user = "nobody";
  now.workers = 2;
  config::Config asked = now;
  asked.workers = 3;
  EXPECT_EQ(keep_until_restart(now, asked, 8).not_applied.size(), 1u);
  asked.workers = 1;
  EXPECT_TRUE(keep_until_restart(now, asked, 8).not_applied.empty());
}

TEST(SameMeaning, LeavesOutTheOrder) {
  config::Config reordered = running();
  std::swap(reordered.pools[0].servers[0], reordered.pools[0].servers[1]);
  std::swap(reordered.listeners[0], reordered.listeners[1]);
  EXPECT_TRUE(same_meaning(running(), reordered));
  config::Config by_place = running();
  by_place.pools[0].ring.scheme.placement = reordered.pools[0].ring.scheme.placement =
      ring::Placement::modulo;
  EXPECT_TRUE(same_meaning(by_place, by_place));
  EXPECT_FALSE(same_meaning(by_place, reordered)) << "hash mod N goes by the order";
  reordered.pools[0].servers[0].weight = 2;
  EXPECT_FALSE(same_meaning(running(), reordered));
}

}  // namespace
}  // namespace clockwise::runtime
