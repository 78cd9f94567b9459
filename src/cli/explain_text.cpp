#include "cli/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/value.hpp>

#include "cli/json_at.h"
#include "upstream/json.h"

namespace clockwise::cli {

namespace {

namespace json = boost::json;

bool is_null(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found == nullptr || found->is_null();
}

// In quotes and escaped: a key may hold anything.
std::string quoted(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found ? upstream::to_text(*found) : "null";
}

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("{:<10}{}\n", label, value);
}

std::string what_is_hashed(const json::object& key) {
  std::string text = line("key", quoted(key, "key"));
  if (!is_null(key, "canonical_key") && quoted(key, "canonical_key") != quoted(key, "key"))
    text += line("hashed", quoted(key, "canonical_key") + ", the part of it that counts");
  text += line("hash", text_at(key, "hash"));
  if (!is_null(key, "slot")) text += line("slot", text_at(key, "slot"));
  return text;
}

std::string points_around(const json::object& key) {
  const bool table = !is_null(key, "slot");
  const auto row = [](const json::object& point) {
    return fmt::format("    {:>20}   {}\n", text_at(point, "position"), text_at(point, "server"));
  };
  const auto after = objects_at(key, "points_after");
  if (after.empty()) return {};
  std::string text = table ? "\nslots around it\n" : "\npoints around it\n";
  text += row(object_at(key, "point_before"));
  if (!table) text += fmt::format("  > {:>20}   the key\n", text_at(key, "hash"));
  for (std::size_t i = 0; i < after.size(); ++i) {
    std::string next = row(*after[i]);
    if (table && i == 0) next[2] = '>';
    text += next;
  }
  return text;
}

std::string place_of(const json::object& step, std::size_t number) {
  if (!is_null(step, "position")) return fmt::format("{:>3}.", number);
  return "   -";
}

std::string load_of(const json::object& step) {
  if (is_null(step, "requests_in_flight")) return {};
  return fmt::format("  {:.0f} in flight", number_at(step, "requests_in_flight"));
}

std::string walk(const json::object& key) {
  const auto steps = objects_at(key, "walk");
  std::size_t width = 0;
  for (const json::object* step : steps) width = std::max(width, text_at(*step, "server").size());
  std::string text = "\nwalk\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const json::object& step = *steps[i];
    const std::string through =
        is_null(step, "position") ? "off the ring" : text_at(step, "position");
    std::string row = fmt::format("{} {:<{}}  {:>20}  {:<8}  {:<7}{}", place_of(step, i + 1),
                                  text_at(step, "server"), width, through, text_at(step, "state"),
                                  text_at(step, "health"), load_of(step));
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

// The position of the first object in an array; empty when there is none.
std::string first_position(const json::object& key, std::string_view name) {
  const auto objects = objects_at(key, name);
  return objects.empty() ? std::string() : text_at(*objects.front(), "position");
}

std::string why_home(const json::object& key) {
  if (!is_null(key, "slot")) return "its home: the slot is its own";
  const std::string through = first_position(key, "walk");
  if (through.empty()) return "its home";
  if (through == first_position(key, "points_after"))
    return "its home: the first point at or after the hash is its own";
  if (through == text_at(object_at(key, "point_before"), "position"))
    return "its home: the point before the hash is the nearest, and its own";
  return "its home";
}

std::string why_failover(const json::object& key) {
  std::string passed;
  for (const json::object* step : objects_at(key, "walk")) {
    const std::string server = text_at(*step, "server");
    if (server == text_at(key, "chosen")) break;
    passed += (passed.empty() ? "" : ", ") + server;
  }
  return fmt::format("failover: {} cannot be used", passed);
}

std::string why_nobody(const json::object& key) {
  if (is_null(key, "server")) return "nobody: no server is on the ring";
  return "nobody: no server that a request tries can be used";
}

std::string choice(const json::object& key) {
  std::string text;
  if (is_null(key, "chosen")) {
    text = line("chosen", why_nobody(key));
  } else {
    const bool home = text_at(key, "reason") == "home";
    text = line("chosen", fmt::format("{}, {}", text_at(key, "chosen"),
                                      home ? why_home(key) : why_failover(key)));
  }
  if (!is_null(key, "previous"))
    text += line("previous", text_at(key, "previous") + ", before the newest change");
  return text;
}

}  // namespace

std::string explain_text(const json::object& key) {
  return what_is_hashed(key) + points_around(key) + walk(key) + "\n" + choice(key);
}

}  // namespace clockwise::cli
