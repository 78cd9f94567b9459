// A proxy as the admin side sees it: a directory with one pool of real rings and one cache, no
// sockets.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "admin/api.h"
#include "cache/store.h"
#include "ring/ring.h"
#include "upstream/directory.h"

namespace clockwise::admin::testing_world {

inline config::Address address_of(const std::string& host, std::uint16_t port) {
  return {host + ":" + std::to_string(port), host, port, {}};
}

inline std::shared_ptr<const ring::Ring> ring_of(const std::vector<config::Server>& servers) {
  return *ring::build({.points = 100}, config::members_of(servers));
}

inline std::shared_ptr<upstream::Cache> cache_of(const std::string& key) {
  auto cache = std::make_shared<upstream::Cache>();
  cache->config.name = "store";
  cache->config.size = std::uint64_t{1} << 20;
  cache->config.key = key;
  cache->key = *http::KeyTemplate::parse(key, {}, http::HostForm::authority);
  cache->store = std::make_shared<cache::Store>(cache->config.size, 1024);
  return cache;
}

// An answer under `key`.
inline void fill(cache::Store& store, std::string_view key, std::string_view tags = {},
                 std::int64_t now_ms = 0) {
  const auto joined = store.join({store.hash(key), key, {}, {}}, {}, false, now_ms);
  ASSERT_TRUE(joined.leads);
  cache::Draft draft;
  draft.tags = tags;
  draft.terms.lifetime = 60;
  draft.length = 4;
  ASSERT_TRUE(store.begin(*joined.fill, draft, now_ms));
  ASSERT_TRUE(store.append(*joined.fill, "body", 4, now_ms));
  store.complete(*joined.fill, 1);
}

class World {
 public:
  explicit World(std::vector<std::string> names = {"a", "b", "c"}) { publish(names); }

  void publish(const std::vector<std::string>& names) {
    std::vector<config::Server> servers;
    for (const std::string& name : names) {
      config::Server server;
      server.name = name;
      server.address = address_of("127.0.0.1", static_cast<std::uint16_t>(8000 + servers.size()));
      servers.push_back(server);
    }
    publish_servers(servers);
  }

  void publish_servers(const std::vector<config::Server>& servers,
                       std::shared_ptr<upstream::RemapWatch> watch = nullptr) {
    auto pool = std::make_shared<upstream::Pool>();
    pool->config.name = "pages";
    pool->config.protocol = protocol;
    pool->config.ring.scheme.points = 100;
    pool->config.ring.replicas = replicas;
    pool->config.servers = servers;
    pool->ring = ring_of(servers);
    pool->digest = "0123456789abcdef";
    pool->counters = directory.pool("pages");
    pool->recent = std::make_shared<upstream::Recent>(2);
    pool->watch = std::move(watch);
    pool->health = std::make_shared<upstream::HealthBoard>("pages");
    for (const config::Server& server : servers) {
      auto backend = directory.backend("pages", server.name);
      auto mark = std::make_shared<upstream::HealthMark>(backend);
      pool->servers.push_back(
          {server, {upstream::Endpoint{}}, std::move(backend), std::move(mark)});
    }
    if (cache) pool->cache = {cache, directory.cache("pages", "store")};
    auto routing = std::make_shared<upstream::Routing>();
    routing->pools.push_back(pool);
    if (cache) routing->caches.push_back(cache);

    config.pools = {pool->config};
    config::Listener listener;
    listener.name = "web";
    listener.address = address_of("127.0.0.1", 0);
    listener.pool = "pages";
    config.listeners = {listener};
    directory.listener("web")->bound_address = "127.0.0.1:40000";
    directory.publish(routing, std::make_shared<config::Config>(config), "clockwise.yaml",
                      "0123456789ab");
    directory.set_ready(true);
  }

  Response send(Request request) {
    Response got;
    int answers = 0;
    api.handle(request, [&](Response response) {
      got = std::move(response);
      ++answers;
    });
    EXPECT_EQ(answers, 1);
    return got;
  }
  Response get(const std::string& target) {
    Request request;
    request.target = target;
    return send(request);
  }
  Response post(const std::string& target, const std::string& body = "") {
    Request request;
    request.method = "POST";
    request.target = target;
    request.body = body;
    return send(request);
  }
  boost::json::value json(const std::string& target) {
    return boost::json::parse(get(target).body);
  }

  config::Protocol protocol = config::Protocol::http;
  std::uint32_t replicas = 1;
  std::shared_ptr<const upstream::Cache> cache = cache_of(config::Cache{}.key);
  config::Config config;
  std::chrono::steady_clock::time_point now{};
  upstream::Directory directory{2, upstream::WallClock::time_point{std::chrono::seconds{1000}},
                                [this] { return now; }};
  upstream::ReloadOutcome next_outcome;  // what a reload will come to
  std::vector<bool> reloads;             // forced or not
  bool busy = false;                     // too many long answers are being made
  bool waits = false;                    // long answers are made when the test says so
  std::vector<std::function<void()>> waiting;
  std::vector<std::string> warnings;
  upstream::RollbackResult next_rollback;  // and a rollback
  std::vector<std::pair<std::uint64_t, bool>> rollbacks;
  upstream::ServerChangeResult next_server_change;
  std::vector<std::pair<upstream::ServerChange, bool>> server_changes;
  Api api{directory,
          {.reload =
               [this](upstream::Trigger, bool force, const auto& done) {
                 reloads.push_back(force);
                 done(next_outcome);
               },
           .rollback =
               [this](std::uint64_t id, bool force, const auto& done) {
                 rollbacks.emplace_back(id, force);
                 done(next_rollback);
               },
           .change_server =
               [this](const upstream::ServerChange& change, bool force, const auto& done) {
                 server_changes.emplace_back(change, force);
                 done(next_server_change);
               }},
          [this](std::function<void()> work) {
            if (busy) return false;
            if (waits)
              waiting.push_back(std::move(work));
            else
              work();
            return true;
          },
          [this](std::string_view text) { warnings.emplace_back(text); }};
};

}  // namespace clockwise::admin::testing_world
