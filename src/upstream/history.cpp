#include "upstream/history.h"

#include <algorithm>
#include <map>

namespace clockwise::upstream {
namespace {

namespace json = boost::json;

std::uint64_t count_of(const RemapWatch& watch) {
  return watch.requests.sum([](const RemapWatch::Count& count) { return count.cell.get(); });
}

// The entries that have to give something up, so that what `size` counts stays within `limit`: from
// the oldest on, the newest only if `even_the_newest`.
std::vector<std::size_t> to_thin(const History& history, std::size_t limit, bool even_the_newest,
                                 auto size) {
  std::size_t total = 0;
  for (const RemapPtr& remap : history) total += size(*remap);
  std::vector<std::size_t> found;
  for (std::size_t i = history.size(); total > limit && i-- > (even_the_newest ? 0 : 1);) {
    const std::size_t here = size(*history[i]);
    if (here == 0) continue;
    total -= here;
    found.push_back(i);
  }
  return found;
}

void omit_moves(Remap& remap) {
  remap.moves_omitted += remap.report.moves.size();
  remap.report.moves = {};
}

}  // namespace

std::string_view to_string(Trigger trigger) noexcept {
  switch (trigger) {
    case Trigger::start:
      return "start";
    case Trigger::watch:
      return "watch";
    case Trigger::poll:
      return "poll";
    case Trigger::signal:
      return "signal";
    case Trigger::api:
      return "api";
  }
  return "";
}

std::uint64_t Remap::remapped_requests() const {
  std::uint64_t total = counted_before + (watch ? count_of(*watch) : 0);
  for (const auto& more : continued) total += count_of(*more);
  return total;
}

std::vector<std::pair<RemapPtr, RemapPtr>> above(const HistoryLimits& limits,
                                                 const History& history) {
  std::map<std::size_t, Remap> thinner;
  const auto copy_of = [&](std::size_t i) -> Remap& {
    return thinner.try_emplace(i, *history[i]).first->second;
  };
  for (const std::size_t i :
       to_thin(history, limits.moves, true, [](const Remap& r) { return r.report.moves.size(); })) {
    omit_moves(copy_of(i));
  }
  for (const std::size_t i : to_thin(history, limits.servers, false,
                                     [](const Remap& r) { return r.report.servers.size(); })) {
    Remap& remap = copy_of(i);
    omit_moves(remap);  // which are between servers
    remap.servers_omitted += remap.report.servers.size();
    remap.report.servers = {};
    remap.before = {};
  }
  std::vector<std::pair<RemapPtr, RemapPtr>> replaced;
  for (auto& [i, remap] : thinner)
    replaced.emplace_back(history[i], std::make_shared<const Remap>(std::move(remap)));
  return replaced;
}

json::object to_json(const Remap& remap, json::value time) {
  json::object entry{{"id", remap.id},         {"time", std::move(time)},
                     {"cause", remap.cause},   {"trigger", to_string(remap.trigger)},
                     {"forced", remap.forced}, {"remapped_requests", remap.remapped_requests()}};
  if (remap.moves_omitted > 0) entry["moves_omitted"] = remap.moves_omitted;
  if (remap.servers_omitted > 0) entry["servers_omitted"] = remap.servers_omitted;
  for (auto& member : to_json(remap.report, false)) entry[member.key()] = std::move(member.value());
  return entry;
}

}  // namespace clockwise::upstream
