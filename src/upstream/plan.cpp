#include "upstream/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "upstream/pool_key.h"
#include "upstream/server_state.h"

namespace clockwise::upstream {
namespace {

// Rounding may put a sum a hair above a limit that it equals; a real excess is larger than this.
constexpr double kRounding = 1e-12;

// One server on one side.
struct Seat {
  const config::Server* server;
  double weight;    // on the ring: 0 when it is off
  double expected;  // share of the weights
  double share;     // share of the circle
};

using Seats = std::map<std::string_view, Seat>;

double ring_weight(const config::Server& server) { return server.on_ring() ? server.weight : 0; }

Seats seats_of(const Side& side) {
  Seats seats;
  if (side.pool == nullptr) return seats;
  double total = 0;
  for (const config::Server& server : side.pool->servers) total += ring_weight(server);
  for (std::size_t i = 0; i < side.pool->servers.size(); ++i) {
    const config::Server& server = side.pool->servers[i];
    const double weight = ring_weight(server);
    const double share = side.ring != nullptr ? side.ring->shares()[i] : 0;
    seats.insert({server.name, {&server, weight, total > 0 ? weight / total : 0, share}});
  }
  return seats;
}

const Seat* find(const Seats& seats, std::string_view name) {
  const auto found = seats.find(name);
  return found == seats.end() ? nullptr : &found->second;
}

std::vector<std::string> names_of(const config::Pool* pool) {
  std::vector<std::string> names;
  if (pool == nullptr) return names;
  for (const config::Server& server : pool->servers) names.push_back(server.name);
  return names;
}

bool has_owner(const Side& side) { return side.ring != nullptr && !side.ring->empty(); }

std::vector<std::string> changes(const Seat* before, const Seat* after) {
  if (before == nullptr) return {"added"};
  if (after == nullptr) return {"removed"};
  std::vector<std::string> found;
  if (before->server->weight != after->server->weight) found.emplace_back("weight");
  if (before->server->state != after->server->state) found.emplace_back("state");
  if (before->server->address != after->server->address) found.emplace_back("address");
  return found;
}

ServerReport server_report(std::string_view name, const Seat* before, const Seat* after) {
  ServerReport report;
  report.name = name;
  report.changes = changes(before, after);
  if (before != nullptr) {
    report.address_before = before->server->address.text;
    report.state_before = to_string(before->server->state);
    report.weight_before = before->server->weight;
    report.expected_before = before->expected;
    report.share_before = before->share;
  }
  if (after != nullptr) {
    report.address_after = after->server->address.text;
    report.state_after = to_string(after->server->state);
    report.weight_after = after->server->weight;
    report.expected_after = after->expected;
    report.share_after = after->share;
  }
  return report;
}

std::vector<ServerReport> server_reports(const Seats& before, const Seats& after) {
  std::set<std::string_view> names;
  for (const auto& [name, seat] : before) names.insert(name);
  for (const auto& [name, seat] : after) names.insert(name);
  std::vector<ServerReport> reports;
  reports.reserve(names.size());
  for (const std::string_view name : names)
    reports.push_back(server_report(name, find(before, name), find(after, name)));
  return reports;
}

// Where the servers of a list stand in the report.
std::vector<ring::ServerIndex> places(std::span<const std::string> names, const Report& report) {
  std::vector<ring::ServerIndex> found;
  found.reserve(names.size());
  for (const std::string& name : names) {
    const auto at = std::ranges::lower_bound(report.servers, name, {}, &ServerReport::name);
    found.push_back(static_cast<ring::ServerIndex>(at - report.servers.begin()));
  }
  return found;
}

std::vector<bool> of_same_weight(const Report& report, const Seats& before, const Seats& after) {
  std::vector<bool> same;
  same.reserve(report.servers.size());
  for (const ServerReport& server : report.servers) {
    const Seat* const old_seat = find(before, server.name);
    const Seat* const new_seat = find(after, server.name);
    same.push_back(old_seat != nullptr && new_seat != nullptr &&
                   old_seat->weight == new_seat->weight);
  }
  return same;
}

// Adds up the moves: in all, needlessly, and for each server.
void add_up(Report& report, const std::vector<bool>& same_weight) {
  for (const ring::Move& move : report.moves) {
    report.moved_ratio += move.ratio;
    report.servers[move.from].lost_ratio += move.ratio;
    report.servers[move.to].gained_ratio += move.ratio;
    if (same_weight[move.from] && same_weight[move.to]) report.needless_ratio += move.ratio;
  }
  report.moved_ratio = std::min(report.moved_ratio, 1.0);
}

ring::Keys keys_of(const Side& before, const Side& after) {
  if (before.pool == nullptr || after.pool == nullptr) return ring::Keys::same;
  return same_key(before.pool->ring, after.pool->ring) ? ring::Keys::same : ring::Keys::other;
}

void account(Report& report, const Side& before, const Side& after) {
  const std::vector<std::string> old_names = names_of(before.pool),
                                 new_names = names_of(after.pool);
  ring::Account account =
      ring::compare({before.ring, old_names}, {after.ring, new_names}, keys_of(before, after));
  const std::vector<ring::ServerIndex> from = places(old_names, report),
                                       to = places(new_names, report);
  for (ring::Move& move : account.moves) {
    move.from = from[move.from];
    move.to = to[move.to];
  }
  report.exact = account.exact;
  report.moves = std::move(account.moves);
}

double minimum(const std::vector<ServerReport>& servers) {
  double sum = 0;
  for (const ServerReport& server : servers)
    sum += std::max(0.0, server.expected_after.value_or(0) - server.expected_before.value_or(0));
  return sum;
}

double shrink(const Seats& before, const Seats& after) {
  if (before.empty()) return 0;
  const auto missing = std::count_if(before.begin(), before.end(), [&](const auto& entry) {
    return !after.contains(entry.first);
  });
  return static_cast<double>(missing) / static_cast<double>(before.size());
}

Guard refusal(const Report& report) {
  if (report.shrink_ratio > report.max_shrink + kRounding) return Guard::max_shrink;
  if (report.moved_ratio > report.max_remap + kRounding) return Guard::max_remap;
  return Guard::none;
}

// Of the requests. What was really asked for tells more than the ring, which knows of no hot keys,
// but a few requests tell little.
double moved_share(const Report& report) {
  constexpr std::uint64_t kEnough = 1000;
  const std::optional<KeyCount>& seen = report.seen_keys;
  if (!seen || seen->total < kEnough) return report.moved_ratio;
  return static_cast<double>(seen->moved) / static_cast<double>(seen->total);
}

}  // namespace

bool Report::changed() const noexcept {
  return ring_changed() || digest_before != digest_after ||
         std::any_of(servers.begin(), servers.end(),
                     [](const ServerReport& server) { return !server.changes.empty(); });
}

bool Report::owned_before() const noexcept {
  return std::ranges::any_of(
      servers, [](const ServerReport& server) { return server.share_before.value_or(0) > 0; });
}

bool Report::owned_after() const noexcept {
  return std::ranges::any_of(
      servers, [](const ServerReport& server) { return server.share_after.value_or(0) > 0; });
}

Report plan(const Side& before, const Side& after) {
  const config::Pool& pool = after.pool != nullptr ? *after.pool : *before.pool;
  const Seats old_seats = seats_of(before), new_seats = seats_of(after);

  Report report;
  report.pool = pool.name;
  report.scheme = ring::to_string(pool.ring.scheme.placement);
  if (before.pool != nullptr)
    report.digest_before = ring_digest(*before.pool, before.ring->order_matters());
  if (after.pool != nullptr)
    report.digest_after = ring_digest(*after.pool, after.ring->order_matters());
  report.servers = server_reports(old_seats, new_seats);
  account(report, before, after);
  add_up(report, of_same_weight(report, old_seats, new_seats));
  if (has_owner(before) && has_owner(after)) report.minimum_ratio = minimum(report.servers);
  report.max_remap = pool.max_remap;
  report.max_shrink = pool.max_shrink;
  report.shrink_ratio = shrink(old_seats, new_seats);
  // A pool that comes or goes as a whole was hardly cut off by accident.
  if (before.pool != nullptr && after.pool != nullptr) report.refused_by = refusal(report);
  return report;
}

Cost cost_of(const Report& report, std::optional<double> hit_ratio,
             std::optional<double> requests_per_second) {
  Cost cost{requests_per_second, hit_ratio, {}};
  if (hit_ratio && requests_per_second)
    cost.extra_fetches_per_second = moved_share(report) * *hit_ratio * *requests_per_second;
  return cost;
}

}  // namespace clockwise::upstream
