#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <iterator>

#include "upstream/json.h"
#include "upstream/plan.h"
#include "upstream/report_text.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;

constexpr std::size_t kPiece = 64 * 1024;

// Whole numbers print as 0 and 1, not as 0E0 and 1E0; all others with every digit they need.
json::value number(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value == std::trunc(value) && std::abs(value) < kExact)
    return static_cast<std::int64_t>(value);
  return value;
}

json::value number(const std::optional<double>& value) {
  return value ? number(*value) : json::value(nullptr);
}

json::value text(const std::optional<std::string>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::array moves_json(const Report& report) {
  json::array array;
  array.reserve(report.moves.size());
  for (const ring::Move& move : report.moves)
    array.push_back({{"from", report.servers[move.from].name},
                     {"to", report.servers[move.to].name},
                     {"ratio", number(move.ratio)}});
  return array;
}

json::object to_json(const ServerReport& server) {
  json::array changes;
  for (const std::string& change : server.changes) changes.emplace_back(change);
  return {{"name", server.name},
          {"changes", std::move(changes)},
          {"address_before", text(server.address_before)},
          {"address_after", text(server.address_after)},
          {"state_before", text(server.state_before)},
          {"state_after", text(server.state_after)},
          {"weight_before", number(server.weight_before)},
          {"weight_after", number(server.weight_after)},
          {"expected_before", number(server.expected_before)},
          {"expected_after", number(server.expected_after)},
          {"share_before", number(server.share_before)},
          {"share_after", number(server.share_after)},
          {"lost_ratio", number(server.lost_ratio)},
          {"gained_ratio", number(server.gained_ratio)}};
}

json::value name_of(Guard guard) {
  switch (guard) {
    case Guard::max_remap:
      return "max_remap";
    case Guard::max_shrink:
      return "max_shrink";
    case Guard::none:
      break;
  }
  return nullptr;
}

json::object guard_json(const Report& report) {
  return {{"max_remap", number(report.max_remap)},
          {"max_shrink", number(report.max_shrink)},
          {"shrink_ratio", number(report.shrink_ratio)},
          {"refused_by", name_of(report.refused_by)}};
}

json::object to_json(const KeyCount& keys) {
  json::array moves;
  for (const KeyMove& move : keys.moves)
    moves.push_back({{"from", move.from}, {"to", move.to}, {"count", move.count}});
  return {{"total", keys.total}, {"moved", keys.moved}, {"moves", std::move(moves)}};
}

json::object to_json(const Cost& cost) {
  return {{"requests_per_second", number(cost.requests_per_second)},
          {"hit_ratio", number(cost.hit_ratio)},
          {"extra_fetches_per_second", number(cost.extra_fetches_per_second)}};
}

json::object without_moves(const Report& report, bool with_guard_and_keys) {
  json::array servers;
  servers.reserve(report.servers.size());
  for (const ServerReport& server : report.servers) servers.push_back(to_json(server));
  json::object object{{"pool", report.pool},
                      {"scheme", report.scheme},
                      {"exact", report.exact},
                      {"digest_before", text(report.digest_before)},
                      {"digest_after", text(report.digest_after)},
                      {"moved_ratio", number(report.moved_ratio)},
                      {"minimum_ratio", number(report.minimum_ratio)},
                      {"needless_ratio", number(report.needless_ratio)},
                      {"moves", json::array()},
                      {"servers", std::move(servers)}};
  if (!with_guard_and_keys) return object;
  object["guard"] = guard_json(report);
  if (report.keys) object["keys"] = to_json(*report.keys);
  if (report.seen_keys) object["seen_keys"] = to_json(*report.seen_keys);
  if (report.cost) object["cost"] = to_json(*report.cost);
  return object;
}

void write_moves(const Report& report, const std::function<void(std::string_view)>& sink) {
  std::vector<std::string> names;
  names.reserve(report.servers.size());
  for (const ServerReport& server : report.servers)
    names.push_back(to_text(json::string(server.name)));
  std::string text;
  for (const ring::Move& move : report.moves) {
    if (text.size() >= kPiece) {
      sink(text);
      text.clear();
    }
    fmt::format_to(std::back_inserter(text), "{}{{\"from\": {}, \"to\": {}, \"ratio\": {}}}",
                   &move == &report.moves.front() ? "" : ", ", names[move.from], names[move.to],
                   to_text(number(move.ratio)));
  }
  sink(text);
}

}  // namespace

json::object to_json(const Report& report, bool with_guard_and_keys) {
  json::object object = without_moves(report, with_guard_and_keys);
  object["moves"] = moves_json(report);
  return object;
}

void write_json(const Report& report, const std::function<void(std::string_view)>& sink) {
  std::string text;
  for (std::string_view before = "{"; const auto& member : without_moves(report, true)) {
    text += before;
    before = ", ";
    text += to_text(json::string(member.key())) + ": ";
    if (member.key() != "moves") {
      text += to_text(member.value());
      continue;
    }
    sink(text + "[");
    write_moves(report, sink);
    text = "]";
  }
  sink(text + "}");
}

}  // namespace clockwise::upstream
