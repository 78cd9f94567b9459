#include "cli/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "base/table.h"
#include "cli/figures.h"

namespace clockwise::cli {
namespace {

using upstream::Guard;
using upstream::Report;
using upstream::ServerReport;

constexpr std::size_t kMatrixColumns = 8;  // larger ones are written as a list
constexpr std::size_t kMatrixRows = 40;
constexpr std::size_t kListedMoves = 20;
constexpr std::size_t kListedServers = 40;

std::string whole(double number) {
  return grouped(static_cast<std::uint64_t>(std::llround(number)));
}

// "before -> after", or one of them when they are the same or the other is missing.
std::string change_of(const std::optional<std::string>& before,
                      const std::optional<std::string>& after) {
  if (before == after) return before.value_or("-");
  return before.value_or("-") + " -> " + after.value_or("-");
}

template <class Format>
std::optional<std::string> shown(const std::optional<double>& value, Format format) {
  return value ? std::optional<std::string>(format(*value)) : std::nullopt;
}

// All servers of a small pool; of a large one those that the change names or that it moves most
// keys from or to, in the order of their names.
std::vector<const ServerReport*> shown_servers(const Report& report) {
  std::vector<const ServerReport*> servers;
  for (const ServerReport& server : report.servers) servers.push_back(&server);
  if (servers.size() <= kListedServers) return servers;
  std::ranges::partial_sort(
      servers, servers.begin() + kListedMoves, {}, [](const ServerReport* server) {
        return std::tuple(server->changes.empty(), -(server->lost_ratio + server->gained_ratio),
                          std::string_view(server->name));
      });
  servers.resize(kListedMoves);
  std::ranges::sort(servers, {}, &ServerReport::name);
  return servers;
}

std::string server_table(const Report& report) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  const auto or_nothing = [](double ratio) { return ratio > 0 ? percent(ratio) : std::string(); };
  const std::vector<const ServerReport*> servers = shown_servers(report);
  Table table;
  table.add({"server", "change", "weight", "share", "by weight", "loses", "gains"});
  for (const ServerReport* server : servers)
    table.add(
        {server->name, fmt::format("{}", fmt::join(server->changes, ", ")),
         change_of(shown(server->weight_before, number), shown(server->weight_after, number)),
         change_of(shown(server->share_before, percent), shown(server->share_after, percent)),
         change_of(shown(server->expected_before, percent), shown(server->expected_after, percent)),
         or_nothing(server->lost_ratio), or_nothing(server->gained_ratio)});
  std::string text = table.text();
  if (const std::size_t more = report.servers.size() - servers.size(); more > 0)
    text += fmt::format("  and {} more servers; --json has them all\n", grouped(more));
  return text;
}

// One amount that goes from one server to another: a share, or a number of keys. There may be a
// million of them, so the text is made for those that are shown.
struct Flow {
  std::string_view from, to;
  double amount;
  bool share;

  std::string text() const { return share ? percent(amount) : fmt::format("{}", amount); }
};

std::string matrix(std::span<const Flow> flows, const std::set<std::string_view>& targets) {
  std::map<std::string_view, std::map<std::string_view, std::string>> cells;
  for (const Flow& flow : flows) cells[flow.from][flow.to] = flow.text();
  Table table;
  std::vector<std::string> head{"from \\ to"};
  head.insert(head.end(), targets.begin(), targets.end());
  table.add(std::move(head));
  for (auto& [from, row] : cells) {
    std::vector<std::string> line{std::string(from)};
    for (const std::string_view to : targets) line.push_back(row.contains(to) ? row[to] : "");
    table.add(std::move(line));
  }
  return table.text();
}

std::string largest(std::span<Flow> flows) {
  const std::size_t listed = std::min(flows.size(), kListedMoves);
  std::ranges::partial_sort(
      flows, flows.begin() + static_cast<std::ptrdiff_t>(listed), {},
      [](const Flow& flow) { return std::tuple(-flow.amount, flow.from, flow.to); });
  Table table;
  for (const Flow& flow : flows.first(listed))
    table.add({fmt::format("{} -> {}", flow.from, flow.to), flow.text()});
  std::string text = table.text();
  if (flows.size() > kListedMoves)
    text += fmt::format("  and {} smaller moves; --json has them all\n",
                        grouped(flows.size() - kListedMoves));
  return text;
}

// A matrix where it fits on a screen.
std::string flow_table(std::vector<Flow> flows) {
  std::set<std::string_view> givers, targets;
  for (const Flow& flow : flows) {
    if (givers.size() > kMatrixRows || targets.size() > kMatrixColumns) break;
    givers.insert(flow.from);
    targets.insert(flow.to);
  }
  const bool fits = givers.size() <= kMatrixRows && targets.size() <= kMatrixColumns;
  return fits ? matrix(flows, targets) : largest(flows);
}

std::string moves_text(const Report& report) {
  std::vector<Flow> flows;
  flows.reserve(report.moves.size());
  for (const ring::Move& move : report.moves)
    flows.push_back(
        {report.servers[move.from].name, report.servers[move.to].name, move.ratio, true});
  return "\n" + flow_table(std::move(flows));
}

std::string keys_text(const upstream::KeyCount& keys, bool owned) {
  if (!owned) return fmt::format("\n  none of your {} keys has an owner\n", grouped(keys.total));
  const double share =
      keys.total > 0 ? static_cast<double>(keys.moved) / static_cast<double>(keys.total) : 0;
  std::string text = fmt::format("\n  {} of {} of your keys move ({})\n", grouped(keys.moved),
                                 grouped(keys.total), percent(share));
  if (keys.moves.empty()) return text;
  std::vector<Flow> flows;
  for (const upstream::KeyMove& move : keys.moves)
    flows.push_back({move.from, move.to, static_cast<double>(move.count), false});
  return text + flow_table(std::move(flows));
}

// What the misses after the change cost the servers behind the caches.
std::string cost_text(const Report& report) {
  if (!report.cost || !report.cost->hit_ratio || !report.owned_after()) return {};
  const double hits = *report.cost->hit_ratio, misses = 1 - hits;
  if (!report.cost->requests_per_second || !report.cost->extra_fetches_per_second)
    return fmt::format(
        "\n  at a hit ratio of {:g} %: {} of the requests are fetches right after the change, {} "
        "before\n",
        hits * 100, percent(misses + report.moved_ratio * hits), percent(misses));
  const double rate = *report.cost->requests_per_second;
  return fmt::format(
      "\n  at a hit ratio of {:g} % and {} requests/s: {} more fetches per second right after the "
      "change, {} before\n",
      hits * 100, whole(rate), whole(*report.cost->extra_fetches_per_second), whole(misses * rate));
}

std::string guard_text(const Report& report) {
  switch (report.refused_by) {
    case Guard::max_shrink:
      return fmt::format(
          "\n  a reload would be refused: {} of the servers are gone, max_shrink is {}\n",
          percent(report.shrink_ratio), percent(report.max_shrink));
    case Guard::max_remap:
      return fmt::format("\n  a reload would be refused: {} of the keys move, max_remap is {}\n",
                         percent(report.moved_ratio), percent(report.max_remap));
    case Guard::none:
      break;
  }
  return {};
}

std::string coloured(const std::string& text, std::string_view code, bool colour) {
  return colour && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

}  // namespace

std::string plan_text(const Report& report, bool colour) {
  std::string text =
      coloured("pool " + report.pool, "1", colour) + ": " + upstream::summary(report) + "\n";
  if (report.changed()) text += "\n" + server_table(report);
  if (report.ring_changed()) text += moves_text(report);
  if (report.keys) text += keys_text(*report.keys, report.owned_after());
  text += cost_text(report);
  return text + coloured(guard_text(report), "31", colour);
}

}  // namespace clockwise::cli
