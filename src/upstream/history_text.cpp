// The file of the history:
//
//   {"format": "clockwise remaps", "version": 1, "last_id": 3, "remaps": [
//   {"id": 3, "time": milliseconds since 1970, …REPORT, "before": "the pool, as text"},
//   …]}
//
// Numbers with a fraction are text there.
#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "upstream/history.h"
#include "upstream/json.h"

namespace clockwise::upstream {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr std::string_view kFormat = "clockwise remaps";
constexpr int kVersion = 1;
constexpr double kRounding = 1e-9;  // sums of ratios may end a hair above 1

std::int64_t unix_ms(WallClock::time_point time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
}

// Boost.JSON reads the last digit of a long number as it may; as text it is kept.
void keep_digits(json::value& value) {
  if (value.is_double()) value = json::string(to_text(value));
  if (json::array* array = value.if_array())
    for (json::value& item : *array) keep_digits(item);
  if (json::object* object = value.if_object())
    for (auto& member : *object) keep_digits(member.value());
}

std::string entry_text(const Remap& remap) {
  json::value entry = to_json(remap, unix_ms(remap.time));
  keep_digits(entry);
  if (!remap.before.empty()) entry.get_object()["before"] = remap.before;
  return to_text(entry);
}

// --- and back; what is not as it should be is thrown and caught by parse_history() ------------

struct Damage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void need(bool fulfilled, const char* what) {
  if (!fulfilled) throw Damage(what);
}

std::string text_of(const json::value& value) { return json::value_to<std::string>(value); }

double any_number(const json::value& value) {
  if (!value.is_string()) return value.to_number<double>();
  const std::string text = text_of(value);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  need(error == std::errc{} && end == text.data() + text.size(), "a number cannot be read");
  return number;
}

// "nan" and "inf" are numbers to a reader of text.
double number_of(const json::value& value) {
  const double number = any_number(value);
  need(std::isfinite(number) && number >= 0, "a number is negative or none at all");
  return number;
}

double ratio_of(const json::value& value) {
  const double ratio = number_of(value);
  need(ratio <= 1 + kRounding, "a ratio is above 1");
  return ratio;
}

// The clock counts in finer steps than the file, so not every number of milliseconds is a time.
WallClock::time_point time_of(const json::value& value) {
  constexpr auto kLatest = std::chrono::floor<milliseconds>(WallClock::duration::max());
  const milliseconds since(value.to_number<std::int64_t>());
  need(since.count() >= 0 && since <= kLatest, "a time is out of range");
  return WallClock::time_point(since);
}

template <class T>
std::optional<T> maybe(const json::value& value, T (*read)(const json::value&)) {
  if (value.is_null()) return std::nullopt;
  return read(value);
}

Trigger trigger_of(const json::value& value) {
  const std::string name = text_of(value);
  for (const Trigger trigger :
       {Trigger::start, Trigger::watch, Trigger::poll, Trigger::signal, Trigger::api})
    if (to_string(trigger) == name) return trigger;
  throw Damage("a trigger is not known");
}

ServerReport server_of(const json::object& object) {
  ServerReport server;
  server.name = text_of(object.at("name"));
  for (const json::value& change : object.at("changes").as_array())
    server.changes.push_back(text_of(change));
  const auto text = [&](const char* key) { return maybe(object.at(key), &text_of); };
  const auto number = [&](const char* key) { return maybe(object.at(key), &number_of); };
  const auto ratio = [&](const char* key) { return maybe(object.at(key), &ratio_of); };
  server.address_before = text("address_before");
  server.address_after = text("address_after");
  server.state_before = text("state_before");
  server.state_after = text("state_after");
  server.weight_before = number("weight_before");
  server.weight_after = number("weight_after");
  server.expected_before = ratio("expected_before");
  server.expected_after = ratio("expected_after");
  server.share_before = ratio("share_before");
  server.share_after = ratio("share_after");
  server.lost_ratio = ratio_of(object.at("lost_ratio"));
  server.gained_ratio = ratio_of(object.at("gained_ratio"));
  return server;
}

// Moves name servers of the report, which has them sorted by name.
ring::ServerIndex place_of(const json::value& name, const std::vector<ServerReport>& servers) {
  const auto found = std::ranges::lower_bound(servers, text_of(name), {}, &ServerReport::name);
  need(found != servers.end() && found->name == text_of(name), "a move is of no server");
  return static_cast<ring::ServerIndex>(found - servers.begin());
}

ring::Move move_of(const json::object& object, const std::vector<ServerReport>& servers) {
  return {place_of(object.at("from"), servers), place_of(object.at("to"), servers),
          ratio_of(object.at("ratio"))};
}

Report report_of(const json::object& object) {
  Report report;
  report.pool = text_of(object.at("pool"));
  report.scheme = text_of(object.at("scheme"));
  report.exact = object.at("exact").as_bool();
  report.digest_before = maybe(object.at("digest_before"), &text_of);
  report.digest_after = maybe(object.at("digest_after"), &text_of);
  report.moved_ratio = ratio_of(object.at("moved_ratio"));
  report.minimum_ratio = ratio_of(object.at("minimum_ratio"));
  report.needless_ratio = ratio_of(object.at("needless_ratio"));
  for (const json::value& server : object.at("servers").as_array())
    report.servers.push_back(server_of(server.as_object()));
  const auto doubled =
      std::ranges::adjacent_find(report.servers, std::ranges::greater_equal{}, &ServerReport::name);
  need(doubled == report.servers.end(), "its servers are out of order");
  for (const json::value& move : object.at("moves").as_array())
    report.moves.push_back(move_of(move.as_object(), report.servers));
  return report;
}

std::size_t omitted(const json::object& entry, std::string_view what) {
  const json::value* found = entry.if_contains(what);
  return found ? found->to_number<std::size_t>() : 0;
}

Remap remap_of(const json::object& entry) {
  Remap remap;
  remap.id = entry.at("id").to_number<std::uint64_t>();
  remap.time = time_of(entry.at("time"));
  remap.cause = text_of(entry.at("cause"));
  remap.trigger = trigger_of(entry.at("trigger"));
  remap.forced = entry.at("forced").as_bool();
  remap.counted_before = entry.at("remapped_requests").to_number<std::uint64_t>();
  remap.moves_omitted = omitted(entry, "moves_omitted");
  remap.servers_omitted = omitted(entry, "servers_omitted");
  remap.report = report_of(entry);
  if (const json::value* before = entry.if_contains("before")) remap.before = text_of(*before);
  return remap;
}

SavedHistory history_of(const json::object& document) {
  const json::value* format = document.if_contains("format");
  need(format != nullptr && text_of(*format) == kFormat, "it is not a history of this program");
  need(number_of(document.at("version")) == kVersion, "its version is not known");
  SavedHistory history;
  history.last_id = document.at("last_id").to_number<std::uint64_t>();
  need(history.last_id < std::numeric_limits<std::uint64_t>::max(),
       "its last id is the last of all");
  std::uint64_t below = history.last_id + 1;
  for (const json::value& item : document.at("remaps").as_array()) {
    Remap remap = remap_of(item.as_object());
    need(remap.id > 0 && remap.id < below, "its ids are out of order");
    below = remap.id;
    if (history.remaps.size() < kHistory) history.remaps.push_back(std::move(remap));
  }
  return history;
}

}  // namespace

std::string history_text(const History& history, std::uint64_t last_id) {
  History kept = history;
  for (const auto& [before, after] : above(kInFile, history))
    std::replace(kept.begin(), kept.end(), before, after);
  std::string text = "{\"format\": \"" + std::string(kFormat) +
                     "\", \"version\": " + std::to_string(kVersion) +
                     ", \"last_id\": " + std::to_string(last_id) + ", \"remaps\": [";
  for (std::size_t i = 0; i < kept.size(); ++i)
    text += (i > 0 ? ",\n" : "\n") + entry_text(*kept[i]);
  return text + "]}\n";
}

// The wall that Boost.JSON's exceptions end at: whatever is amiss, the text is damaged.
Result<SavedHistory> parse_history(std::string_view text) {
  try {
    return history_of(json::parse({text.data(), text.size()}).as_object());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace clockwise::upstream
