#include "simulate/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace clockwise::simulate {
namespace {

constexpr std::uint32_t kMostNodes = 10'000;
constexpr double kMostWeight = 10'000;
constexpr std::size_t kLongestName = 64;

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_count(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<std::uint32_t> read_count(std::string_view option, std::string_view text) {
  const auto count = read_number<std::uint32_t>(text);
  if (!count || *count > kMostNodes)
    return fail(fmt::format("{} {}: at most {} servers", option, text, kMostNodes));
  return *count;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             "._:-") == std::string_view::npos;
}

Result<Node> read_node(std::string_view option, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (!is_name(name))
    return fail(fmt::format("{}: \"{}\" is no name of a server: 1 to {} of A-Z a-z 0-9 . _ : -",
                            option, name, kLongestName));
  if (equals == std::string_view::npos) return Node{std::string(name)};
  const std::string_view written = text.substr(equals + 1);
  const auto weight = read_number<double>(written);
  if (!weight || !(*weight >= 0 && *weight <= kMostWeight))
    return fail(fmt::format("{}: the weight \"{}\" of {} is not a number, 0 to {}", option, written,
                            name, kMostWeight));
  return Node{std::string(name), *weight};
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

bool has(const Nodes& nodes, std::string_view name) {
  return std::ranges::any_of(nodes, [&](const Node& node) { return node.name == name; });
}

// Appends servers called node-1, node-2, …, by names that neither list has.
void append_new(Nodes& nodes, const Nodes& others, std::uint32_t count) {
  std::unordered_set<std::string> taken;
  for (const Nodes* list : {&std::as_const(nodes), &others})
    for (const Node& node : *list) taken.insert(node.name);
  for (std::size_t number = std::max(nodes.size(), others.size()) + 1; count > 0; ++number) {
    std::string name = fmt::format("node-{}", number);
    if (taken.contains(name)) continue;
    nodes.push_back({std::move(name)});
    --count;
  }
}

// `others`: the list before the change; who is new has no name of it.
Result<void> append(Nodes& nodes, const Nodes& others, std::string_view option,
                    std::string_view text) {
  if (is_count(text)) {
    const Result<std::uint32_t> count = read_count(option, text);
    if (!count) return count.error();
    append_new(nodes, others, *count);
    return {};
  }
  for (const std::string_view part : split(text)) {
    Result<Node> node = read_node(option, part);
    if (!node) return node.error();
    if (has(nodes, node->name))
      return fail(fmt::format("{}: the server {} is there twice", option, node->name));
    nodes.push_back(std::move(*node));
  }
  return {};
}

Result<void> take_out(Nodes& nodes, std::string_view text) {
  if (is_count(text)) {
    const Result<std::uint32_t> count = read_count("--remove", text);
    if (!count) return count.error();
    nodes.resize(nodes.size() - std::min<std::size_t>(*count, nodes.size()));
    return {};
  }
  for (const std::string_view name : split(text)) {
    if (!has(nodes, name))
      return fail(fmt::format("--remove: there is no server \"{}\" among --nodes", name));
    std::erase_if(nodes, [&](const Node& node) { return node.name == name; });
  }
  return {};
}

Result<void> check_weight(std::string_view when, const Nodes& nodes) {
  if (total_weight(nodes) > 0) return {};
  return fail(fmt::format("{} the change there is {}, nobody could own a key", when,
                          nodes.empty() ? "no server" : "no server with a weight above 0"));
}

}  // namespace

Result<Change> read_change(const ChangeText& text) {
  Change change;
  if (const auto done = append(change.before, {}, "--nodes", text.nodes); !done)
    return done.error();
  change.after = change.before;
  if (!text.remove.empty())
    if (const auto done = take_out(change.after, text.remove); !done) return done.error();
  if (!text.add.empty())
    if (const auto done = append(change.after, change.before, "--add", text.add); !done)
      return done.error();
  if (const auto done = check_weight("before", change.before); !done) return done.error();
  if (const auto done = check_weight("after", change.after); !done) return done.error();
  return change;
}

std::vector<std::optional<ring::ServerIndex>> match(std::span<const Node> to,
                                                    std::span<const Node> from) {
  std::unordered_map<std::string_view, ring::ServerIndex> places;
  for (std::size_t i = 0; i < from.size(); ++i)
    places.emplace(from[i].name, static_cast<ring::ServerIndex>(i));
  std::vector<std::optional<ring::ServerIndex>> matched(to.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    if (const auto place = places.find(to[i].name); place != places.end())
      matched[i] = place->second;
  return matched;
}

double total_weight(std::span<const Node> nodes) noexcept {
  double total = 0;
  for (const Node& node : nodes) total += node.weight;
  return total;
}

double minimum_ratio(const Change& change) {
  const auto previous = match(change.after, change.before);
  const double before = total_weight(change.before);
  const double after = total_weight(change.after);
  double gained = 0;
  for (std::size_t i = 0; i < change.after.size(); ++i) {
    const double had = previous[i] ? change.before[*previous[i]].weight / before : 0;
    gained += std::max(0.0, change.after[i].weight / after - had);
  }
  return gained;
}

}  // namespace clockwise::simulate
