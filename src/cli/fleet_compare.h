// Do many proxies place every key alike? Their rings side by side, pool by pool.
//
// Pure: what each proxy said of its pools in, the differences out. Equal digests are equal rings;
// where they differ, the ring of most proxies is the measure for the others. Health, addresses and
// the order of a list (unless the scheme goes by it) are no differences.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace clockwise::cli {

struct FleetServer {
  std::string name;
  double weight = 1;
  std::string state = "active";
  std::string label;     // its name where it has none of its own
  std::uint32_t id = 0;  // 0: the scheme does not go by ids
  std::string zone;      // decides owners only where a key has several
};

struct FleetPool {
  std::string name;
  std::string digest;
  std::map<std::string, std::string, std::less<>> ring;  // settings as text; empty: not told
  std::vector<FleetServer> servers;                      // in the order of the list
};

struct FleetProxy {
  std::string url;
  std::optional<std::string> error;  // set: it did not answer, and takes no part
  std::vector<FleetPool> pools;
};

// What is different, and where.
struct Finding {
  std::string text;  // "weight 2 instead of 1"
  std::vector<std::string> urls;
};

struct Difference {
  std::string pool;
  std::optional<std::string> server;  // nothing: the settings of the ring, or the pool as a whole
  std::vector<Finding> findings;      // at least one

  [[nodiscard]] std::vector<std::string> urls() const;  // all of the findings, each once
};

// The proxies of one ring. No digest: those that lack the pool.
struct Camp {
  std::optional<std::string> digest;
  std::vector<const FleetProxy*> proxies;
};

// The pools of a proxy as GET /api/v1/pools answers, of older proxies as well.
// The error says what is missing.
[[nodiscard]] Result<std::vector<FleetPool>> fleet_pools(const boost::json::object& answer);

// Every pool that some proxy has, sorted, with its camps: the largest first, of equal ones that of
// the proxy named first. Valid as long as `proxies`.
using Camps = std::map<std::string, std::vector<Camp>>;
[[nodiscard]] Camps camps_of(const std::vector<FleetProxy>& proxies);

// Sorted by pool; settings before servers.
[[nodiscard]] std::vector<Difference> differences(const Camps& camps);

}  // namespace clockwise::cli
