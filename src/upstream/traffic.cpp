#include "upstream/traffic.h"

#include <algorithm>
#include <vector>

#include "upstream/key_count.h"
#include "upstream/pool_key.h"

namespace clockwise::upstream {
namespace {

constexpr SteadyMs kWindow = 60'000;

double per_second(const std::vector<RecentRequest>& requests, SteadyMs since, SteadyMs now) {
  // What came before was overwritten.
  if (requests.size() == RecentRequests::kKept) since = std::max(since, requests.front().at);
  since = std::max(since, now - std::min(now, kWindow));
  const auto counted = std::ranges::count_if(
      requests, [since](const RecentRequest& request) { return request.at >= since; });
  const SteadyMs span = std::max<SteadyMs>(1, now - std::min(now, since));
  return static_cast<double>(counted) * 1000 / static_cast<double>(span);
}

}  // namespace

Traffic traffic_of(const Recent& recent, SteadyMs now) {
  double rate = 0, hits = 0, told = 0;
  bool asked = false;
  for (const RecentRequests& worker : recent.by_worker.all()) {
    const std::vector<RecentRequest> requests = worker.list();
    asked |= !requests.empty();
    rate += per_second(requests, recent.since, now);
    for (const RecentRequest& request : requests) {
      hits += request.answer == http::CacheAnswer::hit;
      told += request.answer != http::CacheAnswer::unknown;
    }
  }
  Traffic traffic;
  if (asked) traffic.requests_per_second = rate;
  if (told > 0) traffic.hit_ratio = hits / told;
  return traffic;
}

std::optional<KeyCount> seen_keys(const Recent& recent, const Side& before, const Side& after) {
  if (!same_positions(before, after)) return std::nullopt;
  KeyCounter counter(before, after);
  for (const RecentRequests& worker : recent.by_worker.all())
    for (const RecentRequest& request : worker.list()) counter.add_position(request.position);
  return counter.result();
}

void add_traffic(Report& report, const Recent& recent, const Side& before, const Side& after,
                 SteadyMs now) {
  report.seen_keys = seen_keys(recent, before, after);
  const Traffic traffic = traffic_of(recent, now);
  report.cost = cost_of(report, traffic.hit_ratio, traffic.requests_per_second);
}

}  // namespace clockwise::upstream
