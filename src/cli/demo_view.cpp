#include "cli/demo_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <optional>

#include "cli/figures.h"
#include "upstream/plan.h"

namespace clockwise::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kBarWidth = 32;

constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kPlain = "\x1b[0m";

std::size_t cells(double ratio, double full) {
  const double width = full > 0 ? ratio / full * static_cast<double>(kBarWidth) : 0;
  return std::min(kBarWidth, static_cast<std::size_t>(std::lround(width)));
}

// '#' up to the load, '|' where the weight says it should end.
std::string bar(double load, double expected, double full) {
  const std::size_t end = cells(load, full);
  const std::size_t mark = cells(expected, full);
  std::string text(kBarWidth + 1, ' ');
  std::fill_n(text.begin(), end, '#');
  text[mark] = '|';
  return text;
}

// Far from its weight: more than a quarter of it, which a ring of 1024 points does not explain.
bool off_balance(const DemoServer& server) {
  return std::abs(server.load - server.expected) > 0.25 * server.expected;
}

std::string row(const DemoServer& server, double full, bool colour) {
  const std::string_view tone = !colour ? "" : off_balance(server) ? kYellow : kGreen;
  return fmt::format("  {:<12} {:>6g} {:>8.1f} % {:>6.1f} %  {}{}{} {:>5.1f} % {:>11} {:>7}{}\n",
                     server.name, server.weight, 100 * server.expected, 100 * server.share, tone,
                     bar(server.load, server.expected, full), colour ? kPlain : "",
                     100 * server.load, grouped(server.requests), grouped(server.errors),
                     server.state == "active" ? "" : "  " + server.state);
}

double number(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_number() ? value->to_number<double>() : 0;
}

std::string text(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

const json::array& list(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* value = object.if_contains(name);
  return value && value->is_array() ? value->as_array() : kNone;
}

template <class T>
std::optional<T> maybe(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (!value || value->is_null()) return std::nullopt;
  if constexpr (std::is_same_v<T, double>)
    return value->to_number<double>();
  else
    return json::value_to<T>(*value);
}

upstream::ServerReport server_report(const json::object& from) {
  upstream::ServerReport server;
  server.name = text(from, "name");
  for (const json::value& change : list(from, "changes"))
    server.changes.emplace_back(change.as_string());
  server.address_before = maybe<std::string>(from, "address_before");
  server.address_after = maybe<std::string>(from, "address_after");
  server.state_before = maybe<std::string>(from, "state_before");
  server.state_after = maybe<std::string>(from, "state_after");
  server.weight_before = maybe<double>(from, "weight_before");
  server.weight_after = maybe<double>(from, "weight_after");
  server.expected_before = maybe<double>(from, "expected_before");
  server.expected_after = maybe<double>(from, "expected_after");
  server.share_before = maybe<double>(from, "share_before");
  server.share_after = maybe<double>(from, "share_after");
  server.lost_ratio = number(from, "lost_ratio");
  server.gained_ratio = number(from, "gained_ratio");
  return server;
}

upstream::Report report_of(const json::object& from) {
  upstream::Report report;
  report.pool = text(from, "pool");
  report.moved_ratio = number(from, "moved_ratio");
  report.minimum_ratio = number(from, "minimum_ratio");
  report.needless_ratio = number(from, "needless_ratio");
  for (const json::value& server : list(from, "servers"))
    report.servers.push_back(server_report(server.as_object()));
  const auto place = [&](const std::string& name) {
    const auto at = std::ranges::find(report.servers, name, &upstream::ServerReport::name);
    return static_cast<ring::ServerIndex>(at - report.servers.begin());
  };
  for (const json::value& move : list(from, "moves")) {
    const json::object& m = move.as_object();
    report.moves.push_back({place(text(m, "from")), place(text(m, "to")), number(m, "ratio")});
  }
  return report;
}

}  // namespace

std::string server_table(const std::vector<DemoServer>& servers, bool colour) {
  double full = 0;
  for (const DemoServer& server : servers) full = std::max({full, server.load, server.expected});
  std::string table = fmt::format("  {:<12} {:>6} {:>10} {:>8}  {:<{}} {:>7} {:>11} {:>7}\n",
                                  "server", "weight", "expected", "ring", "load  (| expected)",
                                  kBarWidth + 1, "", "requests", "errors");
  for (const DemoServer& server : servers) table += row(server, full, colour);
  return table;
}

DemoServer server_of(const json::object& from) {
  DemoServer server{.name = text(from, "name"), .state = text(from, "state")};
  server.weight = number(from, "weight");
  server.expected = number(from, "expected_ratio");
  server.share = number(from, "share_ratio");
  if (const json::value* totals = from.if_contains("requests_total"); totals && totals->is_object())
    server.errors = static_cast<std::uint64_t>(number(totals->as_object(), "error") +
                                               number(totals->as_object(), "5xx"));
  return server;
}

std::string remap_in_words(const json::object& remap) {
  return upstream::summary(report_of(remap));
}

}  // namespace clockwise::cli
