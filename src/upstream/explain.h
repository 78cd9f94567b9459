// Why a key is where it is: the points around it, the servers in the order of its walk, and which
// of them would be asked now. What `explain` and the look-up of the admin API answer.
//
// Pure. Health and load are arguments; without them the answer is the configuration's alone.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"
#include "metrics/cells.h"
#include "ring/ring.h"
#include "upstream/lookup.h"

namespace clockwise::upstream {

// What a running proxy knows of a server.
struct Live {
  bool reachable = true;  // its name has an address
  bool usable = true;     // as far as its health goes
  std::string_view health = "up";
  std::uint64_t in_flight = 0;
};

struct LivePool {
  std::vector<Live> servers;  // by index; empty: nothing is known, all on the ring count as usable
  bool panic = false;         // health is left out of account
};

// A key, or a position of the ring that was asked for as such.
struct Question {
  std::string text;  // as asked; of a key its octets
  ring::Position position = 0;
  bool is_key = true;
};

// A server that the key could go to. Those off the ring stand last and have no position.
struct Step {
  std::optional<ring::Position> position;  // of the point, or the slot, through which it is reached
  ring::ServerIndex server = 0;

  friend bool operator==(const Step&, const Step&) = default;
};

struct Explanation {
  KeyPlace place;                        // hash and owners, as look-ups name them
  std::optional<std::string> canonical;  // what of the key is hashed; of a position nothing
  std::optional<ring::Position> slot;    // of schemes that are tables: where the hash falls
  std::optional<ring::Point> before;     // the last point below the hash, across the top if need be
  std::vector<ring::Point> after;        // the first ones from the hash on
  std::vector<Step> walk;                // distinct servers
  std::optional<ring::ServerIndex> chosen;  // nothing: the tries end before a usable server
  std::optional<metrics::Routed> reason;    // with `chosen`
};

// The walk shows at least this many servers, where the ring has them.
inline constexpr std::uint32_t kWalkShown = 16;

// `replicas`: how many owners to name. A request tries, as `retry.attempts` and `failover` of the
// pool say, those on the walk that are usable and then the others (upstream/choose.h); one without
// a known address costs a try. Where items have several owners, the first that is usable is asked.
[[nodiscard]] Explanation explain(const config::Pool& pool, const ring::Ring& ring,
                                  const Question& question, std::uint32_t replicas = 1,
                                  const LivePool& live = {});

// The key object of look-ups (upstream/lookup.h) plus {"canonical_key", "slot", "point_before":
// {"position", "server"}, "points_after": [same], "walk": [{"position", "server", "address",
// "state", "health", "requests_in_flight"}], "chosen", "reason"}. Positions are decimal strings;
// without `live` health is "unknown" and the load null.
[[nodiscard]] boost::json::object to_json(const config::Pool& pool, const Question& question,
                                          const Explanation& explanation, const LivePool& live = {},
                                          const std::optional<std::string>& previous = {});

}  // namespace clockwise::upstream
