#include "admin/server_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "config/field.h"
#include "config/values.h"
#include "upstream/json.h"
#include "upstream/server_state.h"

namespace clockwise::admin {

namespace {

namespace json = boost::json;
using config::ServerState;

constexpr std::string_view kShape =
    R"(wanted is an object such as {"state": "draining"} or {"weight": 3})";

// "line 2, column 5", counted from 1.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line = before.rfind('\n');
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     line == std::string_view::npos ? at + 1 : at - line);
}

Result<json::value> parse(std::string_view body) {
  json::parser parser;
  boost::system::error_code ec;
  const std::size_t read = parser.write_some(body.data(), body.size(), ec);
  if (ec)
    return fail(fmt::format("the body is not JSON ({}, at {}); {}", ec.message(),
                            place_of(body, read), kShape));
  if (const std::size_t rest = body.find_first_not_of(" \t\r\n", read);
      rest != std::string_view::npos)
    return fail(
        fmt::format("the body goes on behind its value, at {}; {}", place_of(body, rest), kShape));
  return parser.release();
}

// What was found, for a message: never longer than a line.
std::string shown(const json::value& value) {
  if (value.is_string()) return config::quoted(value.get_string());
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const bool infinite = value.is_double() && !std::isfinite(value.get_double());
  return infinite ? "a number beyond all bounds" : upstream::to_text(value);
}

// A key of an object that stands there for the second time. The parser would keep the last one.
struct Repeated {
  std::string key;
  std::size_t at;
};

// Keys as they read once decoded: "st\u0061te" is "state". REQUIRES: `body` is a JSON object.
std::optional<Repeated> find_repeated(std::string_view body) {
  std::set<std::string> seen;
  int depth = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    if (body[at] == '{' || body[at] == '[') ++depth;
    if (body[at] == '}' || body[at] == ']') --depth;
    if (body[at] != '"') continue;
    const std::size_t begin = at++;
    while (body[at] != '"') at += body[at] == '\\' ? 2 : 1;
    const std::size_t next = body.find_first_not_of(" \t\r\n", at + 1);
    if (depth != 1 || body[next] != ':') continue;
    const json::value key = json::parse(body.substr(begin, at + 1 - begin));
    if (const auto [name, is_new] = seen.emplace(key.get_string()); !is_new)
      return Repeated{*name, begin};
  }
  return std::nullopt;
}

Result<void> read_state(const json::value& value, upstream::ServerChange& change) {
  for (const ServerState state : {ServerState::active, ServerState::draining, ServerState::down})
    if (value.is_string() && value.get_string() == upstream::to_string(state)) {
      change.state = state;
      return {};
    }
  return fail(fmt::format("state: {} is not one of active, draining, down", shown(value)));
}

// By the rules of the configuration: the change must be possible as a change of its file too.
Result<void> read_weight(const json::value& value, upstream::ServerChange& change) {
  const std::string text = value.is_number() ? upstream::to_text(value) : "";
  const auto weight = config::parse_number(text, 0, config::kMaxWeight);
  if (!weight) return fail(fmt::format("weight: {} {}", shown(value), weight.error().message));
  change.weight = *weight;
  return {};
}

}  // namespace

Result<upstream::ServerChange> read_server_change(std::string_view body) {
  const auto parsed = parse(body);
  if (!parsed) return parsed.error();
  if (!parsed->is_object() || parsed->get_object().empty())
    return fail(fmt::format("nothing to change; {}", kShape));
  upstream::ServerChange change;
  for (const auto& [name, value] : parsed->get_object()) {
    Result<void> read;
    if (name == "state")
      read = read_state(value, change);
    else if (name == "weight")
      read = read_weight(value, change);
    else
      read = fail(fmt::format("unknown field {}; there are: state, weight", config::quoted(name)));
    if (!read) return read.error();
  }
  if (const auto repeated = find_repeated(body))
    return fail(
        fmt::format("{}: stands twice, again at {}", repeated->key, place_of(body, repeated->at)));
  return change;
}

}  // namespace clockwise::admin
