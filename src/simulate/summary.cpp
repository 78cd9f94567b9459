#include "simulate/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"

namespace clockwise::simulate {
namespace {

constexpr std::size_t kMostColumns = 10;  // of servers; more would not fit a terminal
constexpr std::size_t kMostNames = 5;

constexpr std::string_view kMeaning = R"(
needless: moved between two servers that are in both lists with the same weight.
deviation: standard deviation of the servers' loads over their mean. A ring that gives each of N
servers V random points is expected to have sqrt((N-1)/(N V+1)), which is near 1/sqrt(V): four times
the points, half the spread. One list of servers is one draw: a row may lie well off.
)";

constexpr std::string_view kJumpNote =
    "jump knows servers by their place in the list only: it moves the minimum when servers come or "
    "go "
    "at\nthe end, and renumbers all that follow when one goes elsewhere.\n";

std::string percent(double ratio) { return fmt::format("{:.2f} %", ratio * 100); }

std::string points_of(const Row& row) {
  return row.points ? fmt::format("{}", *row.points) : std::string("-");
}

std::string figures(std::span<const Row> rows) {
  Table table;
  table.add({"scheme", "points", "moved", "needless", "max/mean", "max/min", "deviation",
             "expected", "1/sqrt(V)"});
  for (const Row& row : rows) {
    const auto three = [](double value) { return fmt::format("{:.3f}", value); };
    const auto most_to_least = row.max_over_min();
    table.add({row.scheme, points_of(row), percent(row.moved_ratio()),
               percent(row.needless_ratio()), three(row.max_over_mean()),
               most_to_least ? three(*most_to_least) : "-", three(row.deviation_ratio()),
               row.points ? three(expected_deviation(*row.points, row.loads.size())) : "-",
               row.points ? three(1 / std::sqrt(static_cast<double>(*row.points))) : "-"});
  }
  return table.text();
}

std::string keys_by_server(std::span<const Row> rows) {
  if (rows.empty() || rows.front().counts.size() > kMostColumns) return {};
  Table table;
  std::vector<std::string> head{"keys of", "points"};
  for (const auto& [name, count] : rows.front().counts) head.push_back(name);
  table.add(std::move(head));
  for (const Row& row : rows) {
    std::vector<std::string> cells{row.scheme, points_of(row)};
    for (const auto& [name, count] : row.counts) cells.push_back(fmt::format("{}", count));
    table.add(std::move(cells));
  }
  return "\n" + table.text();
}

// "a, b, c and 7 more"
std::string some(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += (i == 0 ? "" : ", ") + std::string(names[i]);
  if (names.size() > kMostNames) text += fmt::format(" and {} more", names.size() - kMostNames);
  return text;
}

// The servers of one list that the other lacks.
std::vector<std::string_view> only_in(const Nodes& nodes, const Nodes& others) {
  const auto matched = match(nodes, others);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!matched[i]) names.push_back(nodes[i].name);
  return names;
}

}  // namespace

std::string headline(const Change& change, const KeySeries& keys) {
  std::string first, last;
  std::string text =
      fmt::format("{} keys, {} to {}, on {} servers", keys.count(), keys.write(0, first),
                  keys.write(keys.count() - 1, last), change.before.size());
  const auto added = only_in(change.after, change.before);
  const auto removed = only_in(change.before, change.after);
  if (!removed.empty()) text += fmt::format(", less {}", some(removed));
  if (!added.empty()) text += fmt::format(", plus {}", some(added));
  return text + fmt::format("; at least {} must move.\n\n", percent(minimum_ratio(change)));
}

std::string summary(std::span<const Row> rows) {
  std::string text = figures(rows) + keys_by_server(rows) + std::string(kMeaning);
  const bool jumped = std::ranges::any_of(
      rows, [](const Row& row) { return row.scheme == "jump" && row.needless; });
  return jumped ? text + std::string(kJumpNote) : text;
}

}  // namespace clockwise::simulate
