#include "admin/server.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <mutex>

#include "unit/admin/world.h"

namespace clockwise::admin {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;
using testing::Not;
using testing_world::address_of;
using testing_world::World;

// A client that writes what it is told and reads to the end of the connection.
template <class Protocol>
class Client {
 public:
  explicit Client(const typename Protocol::endpoint& endpoint) : socket_(io_) {
    socket_.connect(endpoint);
  }

  Client& write(const std::string& text) {
    asio::write(socket_, asio::buffer(text));
    return *this;
  }
  std::string read_all() {
    std::string text;
    boost::system::error_code end;
    asio::read(socket_, asio::dynamic_buffer(text), end);
    return text;
  }
  std::string read_head() {
    std::string text;
    asio::read_until(socket_, asio::dynamic_buffer(text), "\r\n\r\n");
    return text;
  }

 private:
  asio::io_context io_;
  typename Protocol::socket socket_;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    config::Admin admin;
    admin.address = address_of("127.0.0.1", 0);
    const auto bound = server.start(admin);
    ASSERT_TRUE(bound) << bound.error().message;
    port = bound->port;
    ASSERT_NE(port, 0);
  }
  void TearDown() override { server.stop(); }

  Client<asio::ip::tcp> connect() {
    return Client<asio::ip::tcp>({asio::ip::make_address("127.0.0.1"), port});
  }
  std::string exchange(const std::string& head) {
    return connect().write(head + "Host: x\r\nConnection: close\r\n\r\n").read_all();
  }

  World world;
  std::promise<std::function<void(const upstream::ReloadOutcome&)>> asked;
  AdminServer server{world.directory, {.reload = [this](upstream::Trigger, bool, auto done) {
                       asked.set_value(done);
                     }}};
  std::uint16_t port = 0;
};

TEST_F(ServerTest, AnswersOverTheNetwork) {
  const std::string answer = exchange("GET /healthz HTTP/1.1\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nok\n")) << answer;
}

TEST_F(ServerTest, KeepsTheConnection) {
  auto client = connect();
  client.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_head(), HasSubstr("200 OK"));
  client.write("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("ready\n"));
}

TEST_F(ServerTest, HeadHasTheLengthAndNoBody) {
  const std::string answer = exchange("HEAD /healthz HTTP/1.1\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(ServerTest, AsksForOneHost) {
  const auto status = [&](const std::string& head) {
    return connect().write(head + "Connection: close\r\n\r\n").read_all().substr(0, 12);
  };
  EXPECT_EQ(status("GET /healthz HTTP/1.1\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET /healthz HTTP/1.1\r\nHost:\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(status("GET /healthz HTTP/1.0\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(status("GET http://a/healthz HTTP/1.1\r\nHost: a\r\n"), "HTTP/1.1 200");
}

TEST_F(ServerTest, ABrowserMustNotChangeThingsForAnotherSite) {
  EXPECT_THAT(exchange("POST /api/v1/reload HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\n"),
              HasSubstr(" 403 "));
}

struct Refusal {
  const char* name;
  std::string head;
  const char* status;
};

TEST_F(ServerTest, RefusesWhatItWillNotRead) {
  const Refusal rows[]{
      {"no HTTP", "nonsense\r\n", " 400 "},
      {"large head", "GET / HTTP/1.1\r\nX: " + std::string(17000, 'x') + "\r\n", " 431 "},
      {"large body", "POST /api/v1/reload HTTP/1.1\r\nContent-Length: 4194305\r\n", " 413 "},
      {"chunks", "POST /api/v1/reload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", " 411 "},
      {"coding", "POST /api/v1/reload HTTP/1.1\r\nTransfer-Encoding: gzip\r\n", " 411 "},
  };
  for (const Refusal& row : rows)
    EXPECT_THAT(exchange(row.head), HasSubstr(row.status)) << row.name;
}

TEST_F(ServerTest, TellsAClientThatAsksToGoOn) {
  auto client = connect();
  client.write(
      "POST /api/v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
      "Expect: 100-continue\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_head(), HasSubstr("100 Continue"));
  EXPECT_THAT(client.write("hi").read_all(), HasSubstr(" 404 "));
}

TEST_F(ServerTest, ReloadUnderWayHoldsUpNoScrape) {
  auto client = connect();
  client.write("POST /api/v1/reload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto done = asked.get_future().get();
  EXPECT_THAT(exchange("GET /metrics HTTP/1.1\r\n"), HasSubstr("clockwise_build_info"));
  done(upstream::ReloadOutcome{});
  EXPECT_THAT(client.read_all(), HasSubstr("\"unchanged\""));
}

TEST_F(ServerTest, ReloadMayEndAfterTheServer) {
  auto client = connect();
  client.write("POST /api/v1/reload HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto done = asked.get_future().get();
  server.stop();
  EXPECT_EQ(client.read_all(), "");
  done(upstream::ReloadOutcome{});
}

std::string plan_request() {
  const std::string body = "servers: [{name: b, address: '127.0.0.1:8001'}]";
  return "POST /api/v1/pools/pages/plan HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_F(ServerTest, LongAnswersComeInTheirTurn) {
  std::vector<std::unique_ptr<Client<asio::ip::tcp>>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<Client<asio::ip::tcp>>(
        asio::ip::tcp::endpoint{asio::ip::make_address("127.0.0.1"), port}));
    clients.back()->write(plan_request());
  }
  for (const auto& client : clients) EXPECT_THAT(client->read_all(), HasSubstr("\"moved_ratio\""));
}

TEST_F(ServerTest, ALongAnswerMayComeAfterItsClientOrTheServerHasGone) {
  for (int i = 0; i < 10; ++i) connect().write(plan_request());
  EXPECT_THAT(exchange("GET /healthz HTTP/1.1\r\n"), HasSubstr("200 OK"));
  for (int i = 0; i < 10; ++i) connect().write(plan_request());
  server.stop();
}

TEST_F(ServerTest, ClientsThatAskNothingMakeRoomForOneThatDoes) {
  std::vector<std::unique_ptr<Client<asio::ip::tcp>>> idle;
  for (int i = 0; i < 64; ++i) {
    idle.push_back(std::make_unique<Client<asio::ip::tcp>>(
        asio::ip::tcp::endpoint{asio::ip::make_address("127.0.0.1"), port}));
    idle.back()->write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    idle.back()->read_head();
  }
  idle[0]->write("GET /health");  // makes it no younger: it has not asked yet
  EXPECT_THAT(exchange("GET /healthz HTTP/1.1\r\n"), HasSubstr("200 OK"));
  EXPECT_THAT(idle[0]->read_all(), Not(HasSubstr("HTTP/1.1"))) << "the one that waited longest";
  idle[63]->write("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(idle[63]->read_all(), HasSubstr("ready\n"));
}

TEST_F(ServerTest, WaitsForAPlaceWhenAllAreAnswered) {
  std::mutex mutex;
  std::vector<std::function<void(const upstream::ReloadOutcome&)>> reloads;
  std::promise<void> full;
  AdminServer busy{world.directory, {.reload = [&](upstream::Trigger, bool, auto done) {
                     const std::lock_guard lock(mutex);
                     reloads.push_back(done);
                     if (reloads.size() == 64) full.set_value();
                   }}};
  config::Admin admin;
  admin.address = address_of("127.0.0.1", 0);
  const asio::ip::tcp::endpoint endpoint{asio::ip::make_address("127.0.0.1"),
                                         busy.start(admin)->port};
  std::vector<std::unique_ptr<Client<asio::ip::tcp>>> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<Client<asio::ip::tcp>>(endpoint));
    clients.back()->write("POST /api/v1/reload HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  full.get_future().get();
  std::vector<std::unique_ptr<Client<asio::ip::tcp>>> late;
  for (int i = 0; i < 3; ++i) {
    late.push_back(std::make_unique<Client<asio::ip::tcp>>(endpoint));
    late.back()->write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  reloads[0](upstream::ReloadOutcome{});
  for (const auto& client : late) EXPECT_THAT(client->read_all(), HasSubstr("200 OK"));
  busy.stop();
}

TEST_F(ServerTest, PortInUseIsAnError) {
  AdminServer second{world.directory, {}};
  config::Admin admin;
  admin.address = address_of("127.0.0.1", port);
  const auto bound = second.start(admin);
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().message, HasSubstr("cannot listen on 127.0.0.1:"));
}

TEST_F(ServerTest, StartsAgainElsewhere) {
  server.stop();
  config::Admin admin;
  admin.address = address_of("127.0.0.1", 0);
  const auto bound = server.start(admin);
  ASSERT_TRUE(bound);
  port = bound->port;
  EXPECT_THAT(exchange("GET /api/v1/status HTTP/1.1\r\n"), HasSubstr(bound->text));
}

TEST(UnixServer, IsForItsOwnerOnlyAndReplacesAStaleSocket) {
  const std::string path = testing::TempDir() + "clockwise_admin_" + std::to_string(getpid());
  config::Admin admin;
  admin.address = {"unix:" + path, "", 0, path};
  {
    asio::io_context io;
    asio::local::stream_protocol::acceptor stale(io, path);
  }
  World world;
  AdminServer server{world.directory, {}};
  const auto bound = server.start(admin);
  ASSERT_TRUE(bound) << bound.error().message;
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  Client<asio::local::stream_protocol> client(path);
  client.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("200 OK"));
  server.stop();
  EXPECT_NE(::stat(path.c_str(), &facts), 0) << "the socket is removed";
}

}  // namespace
}  // namespace clockwise::admin
