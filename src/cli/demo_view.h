// What the demo shows: a table of the servers, and a change of the ring in words.
//
// Pure: the state comes in, text goes out.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace clockwise::cli {

struct DemoServer {
  std::string name;
  std::string state;  // active, draining, down
  double weight = 1;
  double expected = 0;  // by weight, 0 to 1
  double share = 0;     // of the ring, 0 to 1
  double load = 0;      // of the requests looked at, 0 to 1
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;
};

// One line for the titles, one for each server: bar of its load with a mark where its weight says
// it should end.
[[nodiscard]] std::string server_table(const std::vector<DemoServer>& servers, bool colour);

// A server of GET /api/v1/pools/P; load and requests are left at 0.
[[nodiscard]] DemoServer server_of(const boost::json::object& server);

// One entry of GET /api/v1/remaps in words:
// "added cache-5: 19.6 % of the keys moved to it, minimum 20.0 %, 0 between other servers".
[[nodiscard]] std::string remap_in_words(const boost::json::object& remap);

}  // namespace clockwise::cli
