// Any method, target, field and body of an admin call: one answer, well formed, with nothing of the
// caller's in its fields; what changes something happens only for whom it may.
//
// First line: method, target. Second line: the fields that count, one octet between them. Then the
// body, which for a plan is a list of servers in YAML or JSON.
#include <boost/json/parse.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/api.h"
#include "config/model.h"
#include "ring/ring.h"
#include "splits.h"
#include "upstream/directory.h"

namespace {

using namespace clockwise;
using clockwise::fuzz::require;

// A directory with one pool, and a control side that says yes to everything.
class World {
 public:
  World() {
    auto pool = std::make_shared<upstream::Pool>();
    pool->config.name = "pages";
    pool->config.ring.scheme.points = 10;
    for (const char* name : {"a", "b", "c"}) {
      config::Server server;
      server.name = name;
      server.address = {"127.0.0.1:8000", "127.0.0.1", 8000, {}};
      pool->config.servers.push_back(server);
      auto backend = directory_.backend("pages", server.name);
      auto mark = std::make_shared<upstream::HealthMark>(backend);
      pool->servers.push_back(
          {server, {upstream::Endpoint{}}, std::move(backend), std::move(mark)});
    }
    pool->ring = *ring::build({.points = 10}, config::members_of(pool->config.servers));
    pool->digest = "0123456789abcdef";
    pool->counters = directory_.pool("pages");
    pool->health = std::make_shared<upstream::HealthBoard>("pages");
    pool->recent = std::make_shared<upstream::Recent>(1);
    auto routing = std::make_shared<upstream::Routing>();
    routing->pools.push_back(pool);
    config::Config config;
    config.pools = {pool->config};
    config.admin.token = kToken;
    directory_.publish(routing, std::make_shared<config::Config>(config), "fuzz.yaml",
                       "0123456789ab");
    directory_.set_ready(true);
  }

  admin::Response send(const admin::Request& request) {
    admin::Response answer;
    int answers = 0;
    changes_ = 0;
    api_.handle(request, [&](admin::Response given) {
      answer = std::move(given);
      ++answers;
    });
    require(answers == 1);
    return answer;
  }

  [[nodiscard]] int changes() const noexcept { return changes_; }

  static constexpr std::string_view kToken = "secret";

 private:
  upstream::Directory directory_{1, upstream::WallClock::time_point{},
                                 [] { return std::chrono::steady_clock::time_point{}; }};
  int changes_ = 0;
  admin::Api api_{
      directory_,
      {.reload =
           [this](upstream::Trigger, bool, const auto& done) {
             ++changes_;
             done({});
           },
       .rollback =
           [this](std::uint64_t, bool, const auto& done) {
             ++changes_;
             done({});
           },
       .change_server =
           [this](const upstream::ServerChange& change, bool, const auto& done) {
             ++changes_;
             require(change.state || change.weight);
             require(!change.weight || (*change.weight >= 0 && *change.weight <= 10'000));
             done(upstream::ReloadOutcome{});
           }},
      [](const std::function<void()>& work) {
        work();
        return true;
      }};
};

std::string_view take(std::string_view& input, char end) {
  const std::string_view part = input.substr(0, input.find(end));
  input.remove_prefix(part.size() < input.size() ? part.size() + 1 : part.size());
  return part;
}

bool is_json(const std::string& text) {
  boost::system::error_code error;
  const auto value = boost::json::parse(text, error);
  return !error && value.is_object();
}

void check(const admin::Response& answer) {
  require(answer.status >= 200 && answer.status <= 599);
  require(!answer.content_type.empty());
  bool packed = false;
  for (const auto& [name, value] : answer.headers) {
    for (const char octet : name + value) require(octet >= ' ' && octet != 0x7f);
    packed |= name == "Content-Encoding";
  }
  if (answer.content_type == "application/json" && !packed) require(is_json(answer.body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
  static World world;
  std::string_view input = clockwise::fuzz::text_of(octets, size);
  std::string_view line = take(input, '\n');
  admin::Request request;
  request.method = take(line, ' ');
  request.target = line;
  line = take(input, '\n');
  request.host = take(line, '\1');
  request.origin = take(line, '\1');
  request.authorization = take(line, '\1');
  request.accept = take(line, '\1');
  request.accept_encoding = take(line, '\1');
  request.local = line.empty();
  request.body = input;
  const admin::Response answer = world.send(request);
  check(answer);
  // With a token no place of origin helps, and reading changes nothing.
  if (world.changes() != 0) {
    require(request.method != "GET" && request.method != "HEAD");
    require(request.authorization.ends_with(World::kToken));
  }
  return 0;
}
