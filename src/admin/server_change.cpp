#include "admin/server_change.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <string>

#include "admin/json_body.h"
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
  const auto parsed = parse_body(body, kShape);
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
  return change;
}

}  // namespace clockwise::admin
