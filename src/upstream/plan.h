// What a change of a pool's server list moves: the report that `plan`, the reload answer, the
// history and the metrics all show, computed once, here.
//
// Pure. Two lists and their rings in, one Report out; its JSON is the REPORT of docs/admin-api.md.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/model.h"
#include "ring/remap.h"
#include "ring/ring.h"

namespace clockwise::upstream {

// Builds the ring of a pool: one member per server in list order, those off the ring with weight 0.
[[nodiscard]] Result<std::shared_ptr<const ring::Ring>> build_ring(const config::Pool& pool);

// 16 hex digits over all that decides an owner: scheme and its parameters, key template, hash tag,
// and of each server name, label, id, weight and whether it is on the ring; never addresses or
// health. Equal digests = equal owners for every key. `in_order`: the order of the list counts too;
// pass Ring::order_matters().
[[nodiscard]] std::string ring_digest(const config::Pool& pool, bool in_order = false);

// One side of a comparison.
struct Side {
  const config::Pool* pool;  // null: the pool does not exist on this side
  const ring::Ring* ring;    // null with it
};

struct ServerReport {
  std::string name;
  std::vector<std::string> changes;  // added, removed, weight, state, address
  std::optional<std::string> address_before, address_after;
  std::optional<std::string> state_before, state_after;
  std::optional<double> weight_before, weight_after;      // as configured
  std::optional<double> expected_before, expected_after;  // weight share; 0 when off the ring
  std::optional<double> share_before, share_after;        // exact share of the circle
  double lost_ratio = 0, gained_ratio = 0;
};

enum class Guard { none, max_remap, max_shrink };

struct KeyMove {
  std::string from, to;
  std::uint64_t count = 0;
};

struct KeyCount {
  std::uint64_t total = 0, moved = 0;
  std::vector<KeyMove> moves;  // sorted by (from, to)
};

// What the change means for the servers behind a cache.
struct Cost {
  std::optional<double> requests_per_second;
  std::optional<double> hit_ratio;  // 0 to 1
  // Right after the change, before the new owners have filled up: a request that moved and would
  // have been a hit becomes a fetch.
  std::optional<double> extra_fetches_per_second;
};

struct Report {
  std::string pool;
  std::string scheme;  // after the change
  bool exact = true;   // false: moved_ratio and all that comes of `moves` is estimated
  std::optional<std::string> digest_before, digest_after;
  double moved_ratio = 0;     // sum of `moves`
  double minimum_ratio = 0;   // sum of max(0, expected after - expected before)
  double needless_ratio = 0;  // moved between servers whose name and weight both lists share
  // From and to are places in `servers`; sorted by them. A change of everything has a million.
  ring::Moves moves;
  std::vector<ServerReport> servers;  // union of both lists, sorted by name
  double max_remap = 0, max_shrink = 0, shrink_ratio = 0;
  Guard refused_by = Guard::none;  // what a guarded reload would say; max_shrink is looked at first
  std::optional<KeyCount> keys;    // the user's own, where they were counted
  std::optional<KeyCount> seen_keys;  // those that the pool was asked for lately
  std::optional<Cost> cost;

  [[nodiscard]] bool ring_changed() const noexcept { return !moves.empty(); }
  [[nodiscard]] bool changed() const noexcept;  // anything at all, a new address included
  // Does any server own keys? A key that loses or gains its only owner has not moved.
  [[nodiscard]] bool owned_before() const noexcept;
  [[nodiscard]] bool owned_after() const noexcept;
};

// A change of the scheme's points, weights or servers is accounted for exactly where ring/remap.h
// can; one of the key (template, ignored parameters, hash tag) is estimated, as if every key got
// another place.
[[nodiscard]] Report plan(const Side& before, const Side& after);

// Of a report, at what was measured or assumed of the pool's traffic. The share that moves is that
// of seen_keys where they are 1000 or more, else that of the ring.
[[nodiscard]] Cost cost_of(const Report& report, std::optional<double> hit_ratio,
                           std::optional<double> requests_per_second);

// "added cache-5: 19.6 % of the keys moved to it, minimum 20.0 %, 0 between other servers"; an
// estimate says "about".
[[nodiscard]] std::string summary(const Report& report);

// "pool pages: 83.1 % of the keys would move, max_remap is 60.0 %". REQUIRES: refused_by is a
// guard.
[[nodiscard]] std::string guard_reason(const Report& report);

// The REPORT object. `with_guard_and_keys` false gives the form of the history.
[[nodiscard]] boost::json::object to_json(const Report& report, bool with_guard_and_keys = true);

}  // namespace clockwise::upstream
