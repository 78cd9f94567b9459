// Small words for tests about pools.
#pragma once

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "config/model.h"
#include "upstream/plan.h"

namespace clockwise::upstream::test {

inline config::Server server(const std::string& name, double weight = 1,
                             config::ServerState state = config::ServerState::active) {
  config::Server server;
  server.name = name;
  server.address = {.text = name + ":80", .host = name, .port = 80, .path = {}};
  server.weight = weight;
  server.state = state;
  return server;
}

inline config::Pool pool(std::initializer_list<config::Server> servers) {
  config::Pool pool;
  pool.name = "pages";
  pool.servers = servers;
  return pool;
}

// A pool and its ring, which a Side points at.
struct BuiltPool {
  config::Pool pool;
  std::shared_ptr<const ring::Ring> ring;

  explicit BuiltPool(config::Pool described) : pool(std::move(described)) {
    auto built = build_ring(pool);
    if (!built) throw std::runtime_error(built.error().message);
    ring = *built;
  }
  BuiltPool(std::initializer_list<config::Server> servers) : BuiltPool(test::pool(servers)) {}

  operator Side() const { return {&pool, ring.get()}; }
};

inline constexpr Side kNoPool{nullptr, nullptr};

}  // namespace clockwise::upstream::test
