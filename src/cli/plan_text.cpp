#include "cli/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/table.h"

namespace clockwise::cli {
namespace {

using upstream::Guard;
using upstream::Report;
using upstream::ServerReport;

constexpr std::size_t kMatrixColumns = 8;  // wider ones are written as a list
constexpr std::size_t kListedMoves = 20;

std::string percent(double ratio) { return fmt::format("{:.2f} %", ratio * 100); }

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

std::string server_table(const Report& report) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  const auto or_nothing = [](double ratio) { return ratio > 0 ? percent(ratio) : std::string(); };
  Table table;
  table.add({"server", "change", "weight", "share", "by weight", "loses", "gains"});
  for (const ServerReport& server : report.servers)
    table.add(
        {server.name, fmt::format("{}", fmt::join(server.changes, ", ")),
         change_of(shown(server.weight_before, number), shown(server.weight_after, number)),
         change_of(shown(server.share_before, percent), shown(server.share_after, percent)),
         change_of(shown(server.expected_before, percent), shown(server.expected_after, percent)),
         or_nothing(server.lost_ratio), or_nothing(server.gained_ratio)});
  return table.text();
}

// One amount that goes from one server to another, as it is shown.
struct Flow {
  std::string from, to;
  double amount;
  std::string text;
};

std::string matrix(std::span<const Flow> flows, const std::set<std::string>& targets) {
  std::map<std::string, std::map<std::string, std::string>> cells;
  for (const Flow& flow : flows) cells[flow.from][flow.to] = flow.text;
  Table table;
  std::vector<std::string> head{"from \\ to"};
  head.insert(head.end(), targets.begin(), targets.end());
  table.add(std::move(head));
  for (auto& [from, row] : cells) {
    std::vector<std::string> line{from};
    for (const std::string& to : targets) line.push_back(row.contains(to) ? row[to] : "");
    table.add(std::move(line));
  }
  return table.text();
}

std::string largest(std::vector<Flow> flows) {
  std::sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) {
    return std::tie(b.amount, a.from, a.to) < std::tie(a.amount, b.from, b.to);
  });
  Table table;
  for (std::size_t i = 0; i < std::min(flows.size(), kListedMoves); ++i)
    table.add({flows[i].from + " -> " + flows[i].to, flows[i].text});
  std::string text = table.text();
  if (flows.size() > kListedMoves)
    text +=
        fmt::format("  and {} smaller moves; --json has them all\n", flows.size() - kListedMoves);
  return text;
}

std::string flow_table(std::vector<Flow> flows) {
  std::set<std::string> targets;
  for (const Flow& flow : flows) targets.insert(flow.to);
  return targets.size() <= kMatrixColumns ? matrix(flows, targets) : largest(std::move(flows));
}

std::string moves_text(const Report& report) {
  std::vector<Flow> flows;
  for (const ring::Move& move : report.moves)
    flows.push_back({report.servers[move.from].name, report.servers[move.to].name, move.ratio,
                     percent(move.ratio)});
  return "\n" + flow_table(std::move(flows));
}

std::string keys_text(const upstream::KeyCount& keys) {
  const double share =
      keys.total > 0 ? static_cast<double>(keys.moved) / static_cast<double>(keys.total) : 0;
  std::string text =
      fmt::format("\n  {} of {} of your keys move ({})\n", keys.moved, keys.total, percent(share));
  if (keys.moves.empty()) return text;
  std::vector<Flow> flows;
  for (const upstream::KeyMove& move : keys.moves)
    flows.push_back(
        {move.from, move.to, static_cast<double>(move.count), fmt::format("{}", move.count)});
  return text + flow_table(std::move(flows));
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
  if (report.keys) text += keys_text(*report.keys);
  return text + coloured(guard_text(report), "31", colour);
}

}  // namespace clockwise::cli
