// mcrouter.json: its pools become pools, its hash (ch3) cannot be kept.
#include <fmt/format.h>

#include <algorithm>

#include "config/field.h"
#include "config/values.h"
#include "import/names.h"
#include "import/readers.h"
#include "import/tree.h"

namespace clockwise::importer {
namespace {

using config::Node;
using config::quoted;

// mcrouter reads JSON with comments, and a tab may stand anywhere. Both become blanks, so that
// every place stays what it is.
std::string without_comments(std::string text) {
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_string) {
      if (text[at] == '\\')
        ++at;
      else if (text[at] == '"')
        in_string = false;
    } else if (text[at] == '"') {
      in_string = true;
    } else if (text.compare(at, 2, "/*") == 0 || text.compare(at, 2, "//") == 0) {
      const bool line = text[at + 1] == '/';
      const std::size_t end = text.find(line ? "\n" : "*/", at + 2);
      const std::size_t stop =
          std::min(end == std::string::npos ? end : end + (line ? 0 : 2), text.size());
      for (; at < stop; ++at)
        if (text[at] != '\n') text[at] = ' ';
      --at;
    } else if (text[at] == '\t') {
      text[at] = ' ';
    }
  }
  return text;
}

// `host:port:protocol:…`: the first two parts are the address.
std::string address_of(std::string_view text) {
  const std::size_t start = text.starts_with('[') ? std::min(text.find(']'), text.size()) : 0;
  const std::size_t port = text.find(':', start);
  if (port == std::string_view::npos) return fmt::format("{}:11211", text);
  return std::string(text.substr(0, text.find(':', port + 1)));
}

class McrouterReader {
 public:
  McrouterReader(const Reading& reading, const Node& root) : reading_(reading), root_(root) {}

  void read() {
    const Node* pools = find(&root_, "pools");
    if (pools == nullptr || pools->kind != config::Kind::map) return;
    for (const config::Entry& entry : pools->entries) read_pool(entry);
    if (reading_.out.pools.empty()) return;
    listener_ = {.name = "mcrouter",
                 .address = "127.0.0.1:5000",
                 .protocol = Protocol::memcached,
                 .pool = reading_.out.pools.front().name};
    for (const config::Entry& entry : root_.entries)
      if (entry.key != "pools") read_other(entry);
    reading_.note({.line = 1, .column = 1},
                  fmt::format("where mcrouter listens stands on its command line: {} stands in for "
                              "it, change it to where clients connect",
                              listener_.address));
    reading_.out.listeners.push_back(std::move(listener_));
  }

 private:
  void read_other(const config::Entry& entry) {
    const Node* const only = only_route(entry);
    if (only != nullptr)
      read_route(entry.place, *only);
    else
      reading_.note(entry.place,
                    fmt::format("{} is not carried over: {}", entry.key,
                                entry.key == "routes" ? "a listener here has one tree of routes"
                                                      : "there is nothing like it here"));
  }

  // What all keys take: `route`, or the one entry of `routes`.
  static const Node* only_route(const config::Entry& entry) {
    if (entry.key == "route") return entry.value;
    const bool one = entry.key == "routes" && entry.value->kind == config::Kind::sequence &&
                     entry.value->items.size() == 1;
    return one ? find(entry.value->items.front(), "route") : nullptr;
  }

  void read_route(config::Place place, const Node& route) {
    if (const auto pool = pool_of(&route)) {
      listener_.pool = *pool;
      return;
    }
    const std::string_view type = text_of(find(&route, "type"));
    if (type == "PrefixSelectorRoute") return read_prefixes(place, route);
    const Node* const children = find(&route, "children");
    const bool first = children != nullptr && children->kind == config::Kind::sequence &&
                       !children->items.empty() && pool_of(children->items.front());
    if (first) listener_.pool = *pool_of(children->items.front());
    reading_.note(place,
                  fmt::format("route {} is not carried over, all keys go to pool {}: failover, "
                              "shadowing and warm-up routes are settings of a pool here (failover, "
                              "handoff)",
                              quoted(type), listener_.pool));
  }

  // mcrouter takes the longest prefix that fits.
  void read_prefixes(config::Place place, const Node& route) {
    const Node* const policies = find(&route, "policies");
    if (policies != nullptr && policies->kind == config::Kind::map)
      for (const config::Entry& policy : policies->entries) read_prefix(policy);
    std::ranges::sort(listener_.routes, [](const Route& a, const Route& b) {
      const std::size_t left = a.key_prefix.size(), right = b.key_prefix.size();
      return left != right ? left > right : a.key_prefix < b.key_prefix;
    });
    if (const auto pool = pool_of(find(&route, "wildcard")))
      listener_.pool = *pool;
    else
      reading_.note(place, fmt::format("the route of keys without one of the prefixes is not "
                                       "carried over, they go to pool {}",
                                       listener_.pool));
  }

  void read_prefix(const config::Entry& policy) {
    const bool is_prefix =
        !policy.key.empty() && policy.key.size() <= 250 &&
        std::ranges::all_of(policy.key, [](unsigned char c) { return c > 0x20; });
    const auto pool = pool_of(policy.value);
    if (is_prefix && pool) return listener_.routes.push_back({policy.key, *pool});
    reading_.note(policy.place,
                  fmt::format("the route of prefix {} is not carried over: {}", quoted(policy.key),
                              is_prefix ? "here it can lead to a pool alone" : "no key begins so"));
  }

  // The pool that a route leads to and nothing else.
  [[nodiscard]] std::optional<std::string> pool_of(const Node* route) const {
    constexpr std::string_view kShort = "PoolRoute|";
    std::string_view name = text_of(route);
    if (name.starts_with(kShort))
      name.remove_prefix(kShort.size());
    else if (text_of(find(route, "type")) == "PoolRoute")
      name = text_of(find(route, "pool"));
    else
      return std::nullopt;
    const std::string wanted = fmt::format("pool {}", name);
    for (const Pool& pool : reading_.out.pools)
      if (pool.source_name == wanted) return pool.name;
    return std::nullopt;
  }

  void read_pool(const config::Entry& entry) {
    Pool pool;
    pool.source_name = fmt::format("pool {}", entry.key);
    pool.protocol = Protocol::memcached;
    const Node* servers = find(entry.value, "servers");
    if (servers == nullptr || servers->kind != config::Kind::sequence || servers->items.empty())
      return reading_.note(
          entry.place, fmt::format("{} has no servers, so it becomes no pool", pool.source_name));
    pool.name = pools_.take(name_from(entry.key, "pool"));
    Names names;
    for (const Node* item : servers->items) add_server(*item, pool, names);
    pool.moves = "mcrouter places by ch3, which no scheme here has";
    reading_.note(
        entry.place,
        fmt::format("{}: keys will move: {}. The pool gets the scheme clockwise; start it "
                    "beside the old one and warm it (handoff, or fill from a fallback)",
                    pool.source_name, pool.moves));
    for (const config::Entry& setting : entry.value->entries)
      if (setting.key != "servers") read_setting(setting, pool);
    reading_.out.pools.push_back(std::move(pool));
  }

  void read_setting(const config::Entry& setting, Pool& pool) const {
    const auto span = config::parse_integer(text_of(setting.value), 1, 86'400'000);
    if (span && setting.key == "server_timeout")
      pool.response = milliseconds(*span);
    else if (span && setting.key == "connect_timeout")
      pool.connect = milliseconds(*span);
    else
      reading_.note(setting.place,
                    fmt::format("{}: {} is not carried over", pool.source_name, setting.key));
  }

  void add_server(const Node& item, Pool& pool, Names& names) const {
    const std::string_view text = text_of(&item);
    if (text.empty())
      return reading_.problem(item.place, fmt::format("{}: a server is a text such as "
                                                      "\"10.0.0.1:11211\"",
                                                      pool.source_name));
    Server server;
    server.address = address_of(text);
    server.name = names.take(name_from(server.address, "server"));
    pool.servers.push_back(std::move(server));
  }

  const Reading& reading_;
  const Node& root_;
  Names pools_;
  Listener listener_;
};

}  // namespace

void read_mcrouter(const Reading& reading) {
  auto plain =
      config::Source::decode(reading.source.name(), without_comments(reading.source.text()));
  if (auto* problem = std::get_if<config::Problem>(&plain))
    return reading.problems.push_back(std::move(*problem));
  const Reading bare{.source = std::get<config::Source>(plain),
                     .files = reading.files,
                     .out = reading.out,
                     .notes = reading.notes,
                     .problems = reading.problems,
                     .left_out = reading.left_out};
  const std::optional<config::Document> document = parse_tree(bare);
  if (document) McrouterReader(bare, *document->root).read();
}

}  // namespace clockwise::importer
