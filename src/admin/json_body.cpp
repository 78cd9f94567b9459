#include "admin/json_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <set>

#include "config/field.h"
#include "upstream/json.h"

namespace clockwise::admin {

namespace {

namespace json = boost::json;

// "line 2, column 5", counted from 1.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line = before.rfind('\n');
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     line == std::string_view::npos ? at + 1 : at - line);
}

// A key of an object that stands there for the second time. The parser would keep the last one.
struct Repeated {
  std::string key;
  std::size_t at;
};

// REQUIRES: `body` is a JSON object.
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

}  // namespace

Result<json::value> parse_body(std::string_view body, std::string_view shape) {
  json::parser parser;
  boost::system::error_code ec;
  const std::size_t read = parser.write_some(body.data(), body.size(), ec);
  if (ec)
    return fail(fmt::format("the body is not JSON ({}, at {}); {}", ec.message(),
                            place_of(body, read), shape));
  if (const std::size_t rest = body.find_first_not_of(" \t\r\n", read);
      rest != std::string_view::npos)
    return fail(
        fmt::format("the body goes on behind its value, at {}; {}", place_of(body, rest), shape));
  json::value value = parser.release();
  if (!value.is_object()) return value;
  if (const auto repeated = find_repeated(body)) {
    const std::string name = config::quoted(repeated->key);
    return fail(fmt::format("{}: stands twice, again at {}",
                            std::string_view(name).substr(1, name.size() - 2),
                            place_of(body, repeated->at)));
  }
  return value;
}

std::string shown(const json::value& value) {
  if (value.is_string()) return config::quoted(value.get_string());
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const bool infinite = value.is_double() && !std::isfinite(value.get_double());
  return infinite ? "a number beyond all bounds" : upstream::to_text(value);
}

}  // namespace clockwise::admin
