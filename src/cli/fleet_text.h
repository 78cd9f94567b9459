// What `fleet` found, for people and for programs.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "cli/fleet_compare.h"

namespace clockwise::cli {

// Everything that a run of `fleet` found.
struct FleetReport {
  std::vector<FleetProxy> proxies;
  Camps camps;
  std::vector<Difference> differences;

  [[nodiscard]] bool complete() const;  // every proxy answered
  [[nodiscard]] bool agree() const { return complete() && differences.empty(); }
};
[[nodiscard]] FleetReport compare_fleet(std::vector<FleetProxy> proxies);

// A paragraph for each pool: which ring is where, and what makes them differ.
[[nodiscard]] std::string fleet_text(const FleetReport& report);

// {"agree", "proxies": [{"url", "pools": [{"pool", "digest"}]}], "differences": [{"pool", "server",
// "urls", "findings": [{"text", "urls"}]}]}; a proxy without an answer has no pools but an "error".
[[nodiscard]] boost::json::object to_json(const FleetReport& report);

}  // namespace clockwise::cli
