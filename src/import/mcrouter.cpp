// mcrouter.json: its pools become pools, its hash (ch3) cannot be kept.
#include <fmt/format.h>

#include "config/field.h"
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
    for (const config::Entry& entry : root_.entries)
      if (entry.key != "pools")
        reading_.note(entry.place,
                      fmt::format("{} is not carried over: {}", entry.key,
                                  entry.key == "route" || entry.key == "routes"
                                      ? "a listener of memcached has one pool; failover, shadowing "
                                        "and warm-up routes are settings of a pool here (failover, "
                                        "fallback, handoff)"
                                      : "there is nothing like it here"));
  }

 private:
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
      if (setting.key != "servers")
        reading_.note(setting.place,
                      fmt::format("{}: {} is not carried over", pool.source_name, setting.key));
    reading_.out.pools.push_back(std::move(pool));
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
