#include "admin/server_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <string>
#include <utility>

#include "upstream/server_state.h"

namespace clockwise::admin {

namespace {

namespace json = boost::json;
using config::ServerState;

constexpr double kMaxWeight = 10'000;
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

// Where a field stands for the second time; npos: it does not. The parser would keep the last one.
std::size_t repeated(std::string_view body, std::string_view name) {
  const std::string quoted = fmt::format("\"{}\"", name);
  bool seen = false;
  for (std::size_t at = 0; (at = body.find(quoted, at)) != std::string_view::npos; ++at) {
    const std::size_t next = body.find_first_not_of(" \t\r\n", at + quoted.size());
    if (next == std::string_view::npos || body[next] != ':') continue;
    if (std::exchange(seen, true)) return at;
  }
  return std::string_view::npos;
}

Result<void> read_state(const json::value& value, upstream::ServerChange& change) {
  for (const ServerState state : {ServerState::active, ServerState::draining, ServerState::down})
    if (value.is_string() && value.get_string() == upstream::to_string(state)) {
      change.state = state;
      return {};
    }
  return fail(
      fmt::format("state: {} is not one of active, draining, down", json::serialize(value)));
}

Result<void> read_weight(const json::value& value, upstream::ServerChange& change) {
  boost::system::error_code ec;
  const double weight = value.is_number() ? value.to_number<double>(ec) : -1;
  if (ec || !(weight >= 0 && weight <= kMaxWeight))
    return fail(fmt::format("weight: {} is not a number, 0 to 10000", json::serialize(value)));
  change.weight = weight;
  return {};
}

}  // namespace

Result<upstream::ServerChange> read_server_change(std::string_view body) {
  const auto parsed = parse(body);
  if (!parsed) return parsed.error();
  if (!parsed->is_object() || parsed->get_object().empty())
    return fail(fmt::format("nothing to change; {}", kShape));
  for (const std::string_view name : {"state", "weight"})
    if (const std::size_t at = repeated(body, name); at != std::string_view::npos)
      return fail(fmt::format("{}: stands twice, again at {}", name, place_of(body, at)));
  upstream::ServerChange change;
  for (const auto& [name, value] : parsed->get_object()) {
    Result<void> read;
    if (name == "state")
      read = read_state(value, change);
    else if (name == "weight")
      read = read_weight(value, change);
    else
      read = fail(fmt::format("unknown field {}; there are: state, weight",
                              json::serialize(json::string(name))));
    if (!read) return read.error();
  }
  return change;
}

}  // namespace clockwise::admin
