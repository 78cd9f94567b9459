#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "upstream/plan.h"

namespace clockwise::upstream {
namespace {

using Servers = std::vector<const ServerReport*>;

Servers with_change(const Report& report, std::string_view change) {
  Servers found;
  for (const ServerReport& server : report.servers)
    if (std::find(server.changes.begin(), server.changes.end(), change) != server.changes.end())
      found.push_back(&server);
  return found;
}

// A few by name, many by number.
std::string listed(const Servers& servers) {
  if (servers.size() > 3) return fmt::format("{} servers", servers.size());
  std::vector<std::string> names;
  for (const ServerReport* server : servers) names.push_back(server->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string weights(const Servers& servers) {
  if (servers.size() > 3) return fmt::format("new weight for {}", listed(servers));
  std::vector<std::string> texts;
  for (const ServerReport* server : servers)
    texts.push_back(fmt::format("weight of {} from {} to {}", server->name, *server->weight_before,
                                *server->weight_after));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string states(const Servers& servers) {
  if (servers.size() > 3) return fmt::format("new state for {}", listed(servers));
  std::vector<std::string> texts;
  for (const ServerReport* server : servers)
    texts.push_back(fmt::format("{} now {}", server->name, *server->state_after));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string what_changed(const Report& report) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view change, auto words) {
    if (const Servers servers = with_change(report, change); !servers.empty())
      parts.push_back(words(servers));
  };
  add("added", [](const Servers& servers) { return "added " + listed(servers); });
  add("removed", [](const Servers& servers) { return "removed " + listed(servers); });
  add("weight", weights);
  add("state", states);
  add("address", [](const Servers& servers) { return "new address for " + listed(servers); });
  if (parts.empty()) parts.emplace_back(report.changed() ? "new ring settings" : "no change");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string percent(double ratio) {
  if (ratio == 0) return "0 %";
  return ratio < 0.001 ? fmt::format("{:.2g} %", ratio * 100)
                       : fmt::format("{:.1f} %", ratio * 100);
}

// " to it", where one kind of change alone explains every move.
std::string direction(const Report& report) {
  const std::size_t added = with_change(report, "added").size();
  const std::size_t removed = with_change(report, "removed").size();
  const bool others =
      !with_change(report, "weight").empty() || !with_change(report, "state").empty();
  if (others || report.needless_ratio > 0 || (added > 0) == (removed > 0)) return {};
  return fmt::format(" {} {}", added > 0 ? "to" : "from", added + removed == 1 ? "it" : "them");
}

}  // namespace

std::string summary(const Report& report) {
  const std::string what = what_changed(report);
  if (!report.changed()) return what;
  if (report.owned_before() && !report.owned_after())
    return what + ": no key has an owner any more";
  if (!report.owned_before() && report.owned_after())
    return what + ": every key has an owner, none had one before";
  if (!report.ring_changed()) return what + ": no key moved";
  return fmt::format("{}: {}{} of the keys moved{}, minimum {}, {} between other servers", what,
                     report.exact ? "" : "about ", percent(report.moved_ratio), direction(report),
                     percent(report.minimum_ratio),
                     report.needless_ratio == 0 ? "0" : percent(report.needless_ratio));
}

std::string guard_reason(const Report& report) {
  if (report.refused_by == Guard::max_shrink)
    return fmt::format("pool {}: {:.1f} % of the servers would leave, max_shrink is {:.1f} %",
                       report.pool, report.shrink_ratio * 100, report.max_shrink * 100);
  return fmt::format("pool {}: {:.1f} % of the keys would move, max_remap is {:.1f} %", report.pool,
                     report.moved_ratio * 100, report.max_remap * 100);
}

}  // namespace clockwise::upstream
