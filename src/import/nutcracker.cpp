// nutcracker.yml (twemproxy): one pool for each of its pools.
//
// Placement follows twemproxy 0.5 (src/nc_conf.c of github.com/twitter/twemproxy): the name after
// the weight is what it hashes; without one the address, with the port unless it is 11211. Its list
// of servers is sorted by that name, shorter ones first, before anything is placed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "config/field.h"
#include "config/values.h"
#include "import/model.h"
#include "import/names.h"
#include "import/readers.h"
#include "import/spans.h"
#include "import/tree.h"
#include "import/weights.h"

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;
using config::quoted;

// Above this a weight is no exact number in the single precision that decides the points.
constexpr std::uint64_t kExact = 1ULL << 24;
constexpr std::string_view kDefaultPort = ":11211";
constexpr std::uint64_t kLongest = 365ULL * 86'400'000;  // in milliseconds: a year

using Row = std::pair<std::string_view, std::string_view>;
constexpr std::array kAdvice{
    Row{"preconnect", "is not needed: connections are made when they are first wanted, and kept"},
    Row{"backlog", "is not carried over: the system's limit is used"},
    Row{"tcpkeepalive", "is not carried over"},
    Row{"reuseport", "is not needed: always on"},
    Row{"redis",
        "is not carried over: Redis is not spoken, so the pool is good for lookup and plan "
        "alone; take its listener out"},
    Row{"redis_auth", "is not carried over: Redis is not spoken"},
    Row{"redis_db", "is not carried over: Redis is not spoken"},
};

// One entry of `servers`, taken apart from its end as twemproxy does.
struct Entry {
  std::string name;  // what twemproxy calls it
  std::string address;
  std::string label;
  std::uint64_t weight = 0;
};

// Cuts `text` at the last `mark`; nothing when there is none.
std::optional<std::string_view> cut_last(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

// The scheme takes the default port off a label. From a name of the user's own twemproxy takes
// nothing, so one that ends like that gets it once more.
std::string label_of(std::string_view name) {
  return fmt::format("{}{}", name, name.ends_with(kDefaultPort) ? kDefaultPort : "");
}

Result<Entry> parse_entry(std::string_view text) {
  constexpr std::string_view kForm =
      "is not \"host:port:weight name\" or \"/path:weight name\" (the name may be left out)";
  const bool is_unix = text.starts_with('/');
  const std::optional<std::string_view> name = cut_last(text, ' ');
  const std::optional<std::string_view> weight = cut_last(text, ':');
  if (!weight || text.empty()) return fail(std::string(kForm));
  Entry entry;
  const auto number = config::parse_integer(*weight, 1, 1'000'000'000);
  if (!number) return fail("has no valid weight: a whole number of at least 1");
  entry.weight = *number;
  if (is_unix) {
    entry.address = fmt::format("unix:{}", text);
    entry.name = name ? *name : text;
    // Without a name twemproxy takes one octet more than the path: the colon behind it.
    entry.label = name ? label_of(*name) : fmt::format("{}:", text);
    return entry;
  }
  std::string_view host = text;
  const std::optional<std::string_view> port = cut_last(host, ':');
  if (!port || host.empty()) return fail(std::string(kForm));
  if (!config::parse_integer(*port, 1, 65535)) return fail("has no valid port: 1 to 65535");
  const bool is_v6 = host.find(':') != std::string_view::npos;
  entry.address = is_v6 ? fmt::format("[{}]:{}", host, *port) : std::string(text);
  entry.name = name ? *name : text;
  entry.label = name ? label_of(*name) : std::string(text);
  return entry;
}

// What twemproxy hashes for a server, by which it sorts its list.
std::string_view hashed_name(const Server& server) {
  std::string_view name = server.label;
  if (name.ends_with(kDefaultPort)) name.remove_suffix(kDefaultPort.size());
  return name;
}

bool shorter_first(const Server& a, const Server& b) {
  const std::string_view left = hashed_name(a);
  const std::string_view right = hashed_name(b);
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

class PoolReader {
 public:
  PoolReader(const Reading& reading, const config::Entry& entry, Names& pools, Names& listeners)
      : reading_(reading), entry_(entry), pools_(pools), listeners_(listeners) {}

  void read() {
    if (entry_.value->kind != config::Kind::map)
      return problem(entry_.place, "is no pool: a map with listen, hash, servers, … is wanted");
    pool_.source_name = fmt::format("pool {}", entry_.key);
    pool_.name = pools_.take(name_from(entry_.key, "pool"));
    pool_.protocol = Protocol::memcached;
    pool_.scheme.placement = ring::Placement::twemproxy;
    pool_.scheme.hash = "fnv1a_64";
    for (const config::Entry& setting : entry_.value->entries) take(setting);
    if (pool_.servers.empty()) {
      if (!listed_) problem(entry_.place, "has no server");
      return;
    }
    finish_ejection();
    sort_servers();
    if (pool_.placed)
      pool_.model = [servers = pool_.servers, scheme = pool_.scheme] {
        return twemproxy_model(servers, scheme);
      };
    scale_weights();
    if (!pool_.placed)
      for (Server& server : pool_.servers) server.label.clear();
    reading_.out.pools.push_back(std::move(pool_));
  }

 private:
  void problem(config::Place place, std::string_view message) const {
    reading_.problem(place, fmt::format("{}: {}", entry_.key, message));
  }
  void note(const config::Entry& setting, std::string_view message) const {
    reading_.note(setting.place, fmt::format("{}: {} {}", pool_.source_name, setting.key, message));
  }

  void take(const config::Entry& setting) {
    const std::string_view key = setting.key;
    const std::string_view text = text_of(setting.value);
    if (key == "servers") return read_servers(*setting.value);
    if (key == "listen") return read_listen(setting);
    if (key == "hash") return read_hash(setting);
    if (key == "hash_tag") return read_hash_tag(setting);
    if (key == "distribution") return read_distribution(setting);
    if (key == "timeout") return read_timeout(setting);
    if (key == "client_connections") return read_client_connections(setting);
    if (key == "server_connections") return read_server_connections(setting);
    if (key == "auto_eject_hosts") return read_auto_eject(setting);
    if (key == "server_failure_limit") return read_failure_limit(setting);
    if (key == "server_retry_timeout") return read_retry_timeout(setting);
    if (text == "false") return;  // is off here too
    for (const auto& [name, advice] : kAdvice)
      if (name == key) return note(setting, advice);
    note(setting, "is not carried over: twemproxy 0.5 has no such setting");
  }

  void read_hash(const config::Entry& setting) {
    const std::string_view hash = text_of(setting.value);
    const auto known = ring::facts(ring::Placement::twemproxy).hashes;
    if (std::find(known.begin(), known.end(), hash) == known.end())
      return problem(setting.value->place, fmt::format("hash: {} is no hash of twemproxy{}",
                                                       quoted(hash), did_you_mean(hash, known)));
    pool_.scheme.hash = hash;
    if (hash == "crc32")
      note(setting, "is 15 bits wide: with ketama all keys are on one server, kept so here");
  }

  void read_hash_tag(const config::Entry& setting) {
    pool_.scheme.hash_tag = text_of(setting.value);
    if (pool_.scheme.hash_tag.size() != 2)
      problem(setting.value->place, "hash_tag: two characters are wanted, such as \"{}\"");
  }

  void read_distribution(const config::Entry& setting) {
    const std::string_view distribution = text_of(setting.value);
    if (distribution == "ketama" || distribution == "modula") {
      pool_.scheme.distribution = distribution;
    } else if (distribution == "random") {
      pool_.placed = false;
      pool_.scheme = {};
      note(setting,
           "random looks at no key, so there is no placement to keep: the pool gets the "
           "scheme clockwise");
    } else {
      problem(setting.value->place, fmt::format("distribution: {} is not ketama, modula or random",
                                                quoted(distribution)));
    }
  }

  void read_timeout(const config::Entry& setting) {
    const std::string_view text = text_of(setting.value);
    const auto span = config::parse_integer(text, 1, kLongest);
    if (!span) return note(setting, "is not carried over: a timeout here is 1ms to a year");
    pool_.connect = pool_.response = milliseconds(*span);
  }

  void read_client_connections(const config::Entry& setting) {
    const auto limit = config::parse_integer(text_of(setting.value), 1, 10'000'000);
    if (limit && listener_ != kNone)
      reading_.out.listeners[listener_].max_connections = *limit;
    else
      note(setting, "is limits.max_connections of the listener here");
  }

  void read_server_connections(const config::Entry& setting) {
    constexpr std::uint64_t kMost = 64;
    const auto count = config::parse_integer(text_of(setting.value), 1, 1'000'000);
    if (!count) return note(setting, "is not carried over: it is 1 to 64 here");
    if (*count > kMost)
      note(setting, "is 64 at most here: each carries the requests of all clients");
    pool_.memcached.server_connections = static_cast<std::uint32_t>(std::min(*count, kMost));
  }

  void read_auto_eject(const config::Entry& setting) {
    if (text_of(setting.value) != "true") return;  // as here
    pool_.ejection.emplace();
    note(setting,
         "is outlier and failover: next here. There a server that is ejected leaves the ring and "
         "moves keys between the others too; here its keys alone go to the next owner");
  }

  void read_failure_limit(const config::Entry& setting) {
    const auto limit = config::parse_integer(text_of(setting.value), 1, 100'000);
    if (!limit) return note(setting, "is not carried over: it is 1 to 100000 here");
    ejection_.failures = static_cast<std::uint32_t>(*limit);
    of_ejection_.push_back(&setting);
  }

  void read_retry_timeout(const config::Entry& setting) {
    const auto span = config::parse_integer(text_of(setting.value), 1, kLongest);
    if (!span) return note(setting, "is not carried over: a span here is 1ms to a year");
    ejection_.span = milliseconds(*span);
    of_ejection_.push_back(&setting);
  }

  // The settings of an ejection may stand before the one that asks for it.
  void finish_ejection() {
    if (pool_.ejection)
      pool_.ejection = ejection_;
    else
      for (const config::Entry* setting : of_ejection_)
        note(*setting, "has no effect without auto_eject_hosts, neither there nor here");
  }

  void read_listen(const config::Entry& setting) {
    std::string_view text = text_of(setting.value);
    if (text.empty()) return problem(setting.place, "listen: an address is wanted");
    std::string address;
    if (text.starts_with('/')) {
      const std::size_t blank = text.find(' ');
      if (blank != std::string_view::npos)
        note(setting, "with permissions: they are not carried over, set them by umask");
      address = fmt::format("unix:{}", text.substr(0, blank));
    } else {
      const std::string_view host = text.substr(0, text.rfind(':'));
      const bool is_v6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
      address = is_v6 ? fmt::format("[{}]{}", host, text.substr(host.size())) : std::string(text);
    }
    listener_ = reading_.out.listeners.size();
    reading_.out.listeners.push_back({.name = listeners_.take(pool_.name),
                                      .address = std::move(address),
                                      .protocol = Protocol::memcached,
                                      .pool = pool_.name});
  }

  void read_servers(const config::Node& list) {
    if (list.kind != config::Kind::sequence)
      return problem(entry_.place, "servers: a list is wanted");
    listed_ = !list.items.empty();
    for (const config::Node* item : list.items) add_server(*item);
  }

  void add_server(const config::Node& item) {
    const auto entry = parse_entry(text_of(&item));
    if (!entry)
      return problem(item.place,
                     fmt::format("servers: {} {}", quoted(text_of(&item)), entry.error().message));
    const auto [place, fresh] = labels_.insert(entry->label);
    if (!fresh)
      return problem(item.place, fmt::format("servers: the name {} stands twice", quoted(*place)));
    pool_.servers.push_back({.name = servers_.take(name_from(entry->name, "server")),
                             .address = entry->address,
                             .label = entry->label,
                             .weight = static_cast<double>(entry->weight),
                             .zone = {}});
  }

  // Weights beyond the limit are divided by what all of them share: the points depend on each
  // weight relative to the sum, which stays the same number in single precision.
  void scale_weights() {
    const Weights weights = weigh(pool_.servers);
    if (weights.fit()) return;
    const bool relative = pool_.scheme.distribution == "ketama";  // modula counts them as they are
    if (relative && weights.fit_divided() && weights.total < kExact) {
      reading_.note(entry_.place,
                    fmt::format("{}: all weights are divided by {}, which moves no key",
                                pool_.source_name, weights.divisor));
    } else {
      pool_.moves = fmt::format("its weights do not fit, the largest possible is {}", kMaxWeight);
      reading_.note(entry_.place,
                    fmt::format("{}: keys will move: {}", pool_.source_name, pool_.moves));
    }
    scale_down(pool_.servers, weights);
  }

  void sort_servers() {
    const bool sorted = std::is_sorted(pool_.servers.begin(), pool_.servers.end(), shorter_first);
    std::sort(pool_.servers.begin(), pool_.servers.end(), shorter_first);
    if (!sorted)
      reading_.note(entry_.place,
                    fmt::format("{}: the servers stand in the order in which twemproxy places them "
                                "(by name, shorter ones first), not in that of its file",
                                pool_.source_name));
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const Reading& reading_;
  const config::Entry& entry_;
  Names& pools_;
  Names& listeners_;
  Names servers_;
  std::set<std::string> labels_;
  Pool pool_;
  std::size_t listener_ = kNone;
  bool listed_ = false;                            // it has servers, right or wrong
  Ejection ejection_{.failures = 2, .span = 30s};  // what twemproxy has where nothing is written
  std::vector<const config::Entry*> of_ejection_;
};

}  // namespace

void read_nutcracker(const Reading& reading) {
  const std::optional<config::Document> document = parse_tree(reading);
  if (!document) return;
  const config::Node& root = *document->root;
  if (root.kind != config::Kind::map) return reading.problem(root.place, "is no map of pools");
  Names pools;
  Names listeners;
  for (const config::Entry& entry : root.entries)
    PoolReader(reading, entry, pools, listeners).read();
}

}  // namespace clockwise::importer
