// envoy.yaml: clusters with RING_HASH or MAGLEV become pools, HTTP listeners listeners.
//
// What a route hashes decides the key: the hash_policy of the first route that leads to a cluster.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>

#include "config/field.h"
#include "config/values.h"
#include "import/model.h"
#include "import/names.h"
#include "import/readers.h"
#include "import/spans.h"
#include "import/tree.h"
#include "import/weights.h"
#include "ring/prime.h"

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;
using config::Node;
using config::quoted;

// An IPv6 address as Envoy prints it (RFC 5952), however it was written; empty for what is none.
std::string canonical_v6(std::string_view text) {
  std::array<unsigned char, 16> bytes{};
  std::array<char, INET6_ADDRSTRLEN> canonical{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1) return {};
  return inet_ntop(AF_INET6, bytes.data(), canonical.data(), canonical.size());
}

// `host:port` of a `socket_address`, `unix:/path` of a `pipe`; empty for anything else. An IPv6
// address is canonical: this text is also what Envoy hashes.
std::string address_of(const Node* address) {
  if (const Node* pipe = find(address, {"pipe", "path"}))
    return fmt::format("unix:{}", text_of(pipe));
  const std::string_view host = text_of(find(address, {"socket_address", "address"}));
  const std::string_view port = text_of(find(address, {"socket_address", "port_value"}));
  if (host.empty() || port.empty()) return {};
  const std::string v6 = canonical_v6(host);
  return v6.empty() ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", v6, port);
}

bool is_numeric(std::string_view address) {
  return address.starts_with("unix:") ||
         config::parse_network(address.substr(0, address.rfind(':'))).has_value() ||
         address.starts_with('[');
}

class Cluster {
 public:
  Cluster(const Reading& reading, const Node& cluster) : reading_(reading), cluster_(cluster) {}

  void read(Names& pools) {
    const std::string_view name = text_of(find(&cluster_, "name"));
    pool_.source_name = fmt::format("cluster {}", name);
    read_scheme();
    read_endpoints();
    if (pool_.servers.empty())
      return reading_.leave_out(
          reading_.source, cluster_.place,
          fmt::format("{}: has no endpoint in load_assignment, so it becomes no pool",
                      pool_.source_name));
    pool_.name = pools.take(name_from(name, "pool"));
    if (pool_.placed) make_model();
    scale_weights();
    if (const Node* timeout = find(&cluster_, "connect_timeout")) {
      pool_.connect = parse_span(text_of(timeout), 1s);
      if (!pool_.connect || *pool_.connect == 0ms) {
        pool_.connect.reset();
        note(*timeout, "connect_timeout is not carried over: a timeout here is 1ms to a year");
      }
    }
    note_rest();
    reading_.out.pools.push_back(std::move(pool_));
  }

 private:
  void note(const Node& at, std::string_view message) const {
    reading_.note(at.place, fmt::format("{}: {}", pool_.source_name, message));
  }
  void lose(const Node& at, std::string why) {
    note(at, "keys will move: " + why);
    pool_.moves = std::move(why);
  }

  void read_scheme() {
    const Node* policy = find(&cluster_, "lb_policy");
    if (text_of(policy) == "RING_HASH") return read_ring(find(&cluster_, "ring_hash_lb_config"));
    if (text_of(policy) == "MAGLEV") {
      pool_.scheme.placement = ring::Placement::maglev;
      return read_table(find(&cluster_, {"maglev_lb_config", "table_size"}));
    }
    if (const Node* newer = find(&cluster_, "load_balancing_policy")) {
      pool_.placed = false;
      return lose(
          *newer,
          "load_balancing_policy is not read; write it as lb_policy RING_HASH or MAGLEV with "
          "its ring_hash_lb_config or maglev_lb_config, and import that");
    }
    pool_.placed = false;
    note(policy != nullptr ? *policy : cluster_,
         fmt::format(
             "{} looks at no key, so there is no placement to keep: the pool gets the scheme "
             "clockwise",
             policy != nullptr ? text_of(policy) : "ROUND_ROBIN"));
  }

  void read_ring(const Node* settings) {
    pool_.scheme.placement = ring::Placement::envoy;
    pool_.scheme.hash = "xxh64";
    number(find(settings, "minimum_ring_size"), pool_.scheme.min_size);
    number(find(settings, "maximum_ring_size"), pool_.scheme.max_size);
    const Node* hash = find(settings, "hash_function");
    if (text_of(hash) == "MURMUR_HASH_2")
      pool_.scheme.hash = "murmur2";
    else if (hash != nullptr && text_of(hash) != "XX_HASH" && text_of(hash) != "DEFAULT_HASH")
      reading_.problem(hash->place, fmt::format("hash_function: {} is not XX_HASH or MURMUR_HASH_2",
                                                quoted(text_of(hash))));
  }

  // Envoy refuses others too: the steps of a server must reach every slot.
  void read_table(const Node* size) {
    number(size, pool_.scheme.table);
    if (!ring::is_prime(pool_.scheme.table))
      reading_.problem(size->place,
                       fmt::format("table_size: {} is no prime", quoted(text_of(size))));
  }

  void number(const Node* node, std::uint32_t& out) const {
    if (node == nullptr) return;
    const auto parsed = config::parse_integer(text_of(node), 1, 8'388'608);
    if (parsed)
      out = static_cast<std::uint32_t>(*parsed);
    else
      reading_.problem(node->place, fmt::format("{} is not a whole number from 1 to 8388608",
                                                quoted(text_of(node))));
  }

  void read_endpoints() {
    const Node* groups = find(&cluster_, {"load_assignment", "endpoints"});
    if (groups == nullptr || groups->kind != config::Kind::sequence) return;
    for (const Node* group : groups->items) {
      const Node* priority = find(group, "priority");
      if (priority != nullptr && text_of(priority) != "0") {
        note(*priority,
             "endpoints of a lower priority are left out: put them into a pool of their "
             "own and name that as fallback");
        continue;
      }
      if (const Node* weight = find(group, "load_balancing_weight")) read_locality(*weight);
      const Node* endpoints = find(group, "lb_endpoints");
      if (endpoints == nullptr) continue;
      for (const Node* endpoint : endpoints->items)
        add_endpoint(*endpoint, text_of(find(group, {"locality", "zone"})));
    }
  }

  void read_locality(const Node& weight) {
    if (find(&cluster_, {"common_lb_config", "locality_weighted_lb_config"}) != nullptr)
      return lose(weight, "locality_weighted_lb_config weighs whole localities, which is not read");
    note(weight,
         "the weight of a locality is not carried over; it counts with "
         "locality_weighted_lb_config alone");
  }

  void add_endpoint(const Node& node, std::string_view zone) {
    const std::string address = address_of(find(&node, {"endpoint", "address"}));
    if (address.empty())
      return note(node, "an endpoint without a socket_address or pipe is left out");
    if (const auto parsed = config::parse_address(address, config::PortRule::connecting); !parsed)
      return reading_.problem(find(&node, {"endpoint", "address"})->place,
                              fmt::format("{} {}", quoted(address), parsed.error().message));
    Server server{.name = {},
                  .address = address,
                  .label = label_of(node, address),
                  .zone = std::string(zone)};
    const std::string_view hostname = text_of(find(&node, {"endpoint", "hostname"}));
    server.name = names_.take(name_from(hostname.empty() ? address : hostname, "server"));
    if (!pool_.placed) server.label.clear();
    if (const Node* weight = find(&node, "load_balancing_weight")) {
      const auto parsed = config::parse_integer(text_of(weight), 1, 4'294'967'295);
      if (parsed)
        server.weight = static_cast<double>(*parsed);
      else
        reading_.problem(weight->place,
                         fmt::format("load_balancing_weight: {} is not a whole number "
                                     "of at least 1",
                                     quoted(text_of(weight))));
    }
    if (const Node* health = find(&node, "health_status")) read_health(*health, server);
    pool_.servers.push_back(std::move(server));
  }

  // The text that Envoy hashes: metadata before the host name before the resolved address.
  std::string label_of(const Node& node, const std::string& address) {
    const Node* key = find(&node, {"metadata", "filter_metadata", "envoy.lb", "hash_key"});
    if (key != nullptr) return std::string(text_of(key));
    const Node* by_name = find(&cluster_, {"common_lb_config", "consistent_hashing_lb_config",
                                           "use_hostname_for_hashing"});
    const std::string_view hostname = text_of(find(&node, {"endpoint", "hostname"}));
    if (text_of(by_name) == "true") {
      const std::string_view host =
          text_of(find(&node, {"endpoint", "address", "socket_address", "address"}));
      return std::string(hostname.empty() ? host : hostname);
    }
    if (pool_.placed && !is_numeric(address))
      lose(node,
           fmt::format("Envoy hashes the address that {} resolves to; write that as the label, "
                       "with its port",
                       quoted(address)));
    return address.starts_with("unix:") ? address.substr(5) : address;
  }

  void read_health(const Node& health, Server& server) {
    const std::string_view status = text_of(&health);
    server.down = status == "UNHEALTHY" || status == "DRAINING" || status == "TIMEOUT";
    if (server.down)
      note(health, fmt::format("the endpoint {} is {}: state down", server.name, status));
  }

  void make_model() {
    pool_.model = [servers = pool_.servers, scheme = pool_.scheme] {
      return scheme.placement == ring::Placement::maglev ? maglev_model(servers, scheme)
                                                         : envoy_model(servers, scheme);
    };
  }

  // Points depend on the weights relative to their sum, so that a common divisor moves nothing.
  void scale_weights() {
    const Weights weights = weigh(pool_.servers);
    if (weights.fit()) return;
    if (weights.fit_divided())
      note(cluster_,
           fmt::format("all weights are divided by {}, which moves no key", weights.divisor));
    else
      lose(cluster_, fmt::format("its weights do not fit, the largest possible is {}", kMaxWeight));
    scale_down(pool_.servers, weights);
  }

  // What the maps say that decide the placement, and that is not read.
  void note_placement() const {
    const Node* common = find(&cluster_, "common_lb_config");
    note_others(common, {"consistent_hashing_lb_config", "locality_weighted_lb_config"});
    note_others(find(common, "consistent_hashing_lb_config"), {"use_hostname_for_hashing"});
    note_others(find(&cluster_, "ring_hash_lb_config"),
                {"minimum_ring_size", "maximum_ring_size", "hash_function"});
    note_others(find(&cluster_, "maglev_lb_config"), {"table_size"});
  }

  void note_others(const Node* map, std::initializer_list<std::string_view> read_here) const {
    if (map == nullptr) return;
    for (const config::Entry& entry : map->entries)
      if (std::ranges::find(read_here, entry.key) == read_here.end())
        reading_.note(entry.place,
                      fmt::format("{}: {} {}", pool_.source_name, entry.key, advice(entry.key)));
  }

  void note_rest() const {
    note_placement();
    constexpr std::array<std::string_view, 8> kReadHere{"name",
                                                        "lb_policy",
                                                        "ring_hash_lb_config",
                                                        "maglev_lb_config",
                                                        "common_lb_config",
                                                        "load_assignment",
                                                        "connect_timeout",
                                                        "type"};
    for (const config::Entry& entry : cluster_.entries)
      if (std::find(kReadHere.begin(), kReadHere.end(), entry.key) == kReadHere.end())
        reading_.note(entry.place,
                      fmt::format("{}: {} {}", pool_.source_name, entry.key, advice(entry.key)));
  }

  static std::string_view advice(std::string_view setting) {
    if (setting == "hash_balance_factor")
      return "is not carried over: it sends keys past a server that is busy; bounded_load of the "
             "ring is its like here (150 is 1.5)";
    if (setting == "health_checks") return "is health of the pool here";
    if (setting == "outlier_detection") return "is outlier of the pool here";
    if (setting == "circuit_breakers") return "is connections of the pool here";
    if (setting == "transport_socket") return "is not carried over: servers are asked without TLS";
    if (setting == "dns_lookup_family" || setting == "respect_dns_ttl")
      return "is not carried over: names are resolved at start and reload, by the system";
    if (setting == "eds_cluster_config") return "is servers_from of the pool here";
    return "is not carried over";
  }

  const Reading& reading_;
  const Node& cluster_;
  Pool pool_;
  Names names_;
};

// Every map below a node that has this key, parents before children.
void each_with(const Node& node, std::string_view key, int depth,
               const std::function<void(const Node&)>& visit) {
  if (depth == 0) return;
  if (find(&node, key) != nullptr) visit(node);
  for (const config::Entry& entry : node.entries) each_with(*entry.value, key, depth - 1, visit);
  for (const Node* item : node.items) each_with(*item, key, depth - 1, visit);
}

class EnvoyReader {
 public:
  EnvoyReader(const Reading& reading, const Node& root) : reading_(reading), root_(root) {}

  void read() {
    const Node* resources = find(&root_, "static_resources");
    const Node* clusters = find(resources != nullptr ? resources : &root_, "clusters");
    if (clusters == nullptr || clusters->kind != config::Kind::sequence) return;
    Names pools;
    for (const Node* cluster : clusters->items)
      if (cluster->kind == config::Kind::map) Cluster(reading_, *cluster).read(pools);
    const Node* listeners = find(resources, "listeners");
    if (listeners != nullptr)
      for (const Node* listener : listeners->items) read_listener(*listener);
    for (std::size_t i = 0; i < reading_.out.pools.size(); ++i) check_key(i);
    note_rest();
  }

 private:
  static constexpr int kDepth = 40;
  static constexpr std::size_t kMaxRoutes = 10'000;

  void note(const Node& at, std::string message) const {
    reading_.note(at.place, std::move(message));
  }

  Pool* pool_of(std::string_view cluster) const {
    for (Pool& pool : reading_.out.pools)
      if (pool.source_name == fmt::format("cluster {}", cluster)) return &pool;
    return nullptr;
  }

  struct Route {
    const Node* action;  // the map below `route`
    std::string_view prefix;
    Pool* pool;
  };

  std::vector<Route> routes_of(const Node& listener) const {
    std::vector<Route> routes;
    each_with(listener, "route", kDepth, [&](const Node& node) {
      const Node* action = find(&node, "route");
      if (const Node* weighted = find(action, "weighted_clusters"))
        note(*weighted, "weighted_clusters are not carried over: a key has one pool");
      Pool* const pool = pool_of(text_of(find(action, "cluster")));
      if (pool != nullptr && routes.size() < kMaxRoutes)
        routes.push_back({action, text_of(find(&node, {"match", "prefix"})), pool});
    });
    return routes;
  }

  // The pool that has what no other route takes; else that of the first route.
  static Pool* main_pool(const std::vector<Route>& routes) {
    for (const Route& route : routes)
      if (route.prefix == "/") return route.pool;
    return routes.empty() ? nullptr : routes.front().pool;
  }

  void read_listener(const Node& listener) {
    const std::string address = address_of(find(&listener, "address"));
    const std::string_view name = text_of(find(&listener, "name"));
    const std::vector<Route> routes = routes_of(listener);
    Pool* const main = main_pool(routes);
    for (const Route& route : routes) {
      read_route(*route.action, *route.pool);
      if (route.pool != main)
        note(*route.action,
             fmt::format("a route leads to pool {}: the pool of listener {} is {}, add "
                         "a route for it",
                         route.pool->name, name, main->name));
    }
    note(listener, fmt::format("of listener {} the address, the routes to clusters and their "
                               "hash_policy are carried over, nothing else",
                               name));
    if (find(&listener, "filter_chains") != nullptr) note_tls(listener);
    if (main == nullptr || address.empty())
      return note(listener, fmt::format("listener {} leads to no pool, so it is left out", name));
    Listener out;
    out.name = names_.take(name_from(name, "web"));
    out.address = address;
    out.pool = main->name;
    reading_.out.listeners.push_back(std::move(out));
  }

  void note_tls(const Node& listener) {
    each_with(listener, "transport_socket", kDepth, [&](const Node& chain) {
      note(chain, "transport_socket: listeners are plain, keep a TLS terminator in front");
    });
  }

  void read_route(const Node& route, Pool& pool) {
    const Node* policies = find(&route, "hash_policy");
    if (const Node* timeout = find(&route, "timeout"))
      note(*timeout, fmt::format("{}: the timeout of a route is for the whole answer; "
                                 "timeouts.response here is for its first byte and between bytes",
                                 pool.source_name));
    for (const std::string_view rewrite :
         {"prefix_rewrite", "regex_rewrite", "host_rewrite_literal"})
      if (const Node* node = find(&route, rewrite))
        note(*node, fmt::format("{} is not carried over: targets pass unchanged", rewrite));
    if (policies == nullptr || policies->kind != config::Kind::sequence || !pool.placed) return;
    const auto [known, fresh] = keyed_.try_emplace(pool.name);
    std::string key;
    const std::string moves = key_of(*policies, key);
    if (!fresh) {
      if (known->second != key + moves)
        note(*policies, fmt::format("{}: another hash_policy than that of its first route is not "
                                    "carried over",
                                    pool.source_name));
      return;
    }
    known->second = key + moves;
    if (moves.empty()) {
      pool.key = key;
      return;
    }
    pool.moves = moves;
    note(*policies, fmt::format("{}: keys will move: {}", pool.source_name, moves));
  }

  // Sets the key, or returns why it cannot be written here.
  static std::string key_of(const Node& policies, std::string& key) {
    if (policies.items.size() != 1)
      return "several hash policies are mixed into one hash there, here a key has one text";
    const Node* policy = policies.items.front();
    const std::string_view header = text_of(find(policy, {"header", "header_name"}));
    const std::string_view cookie = text_of(find(policy, {"cookie", "name"}));
    const std::string_view query = text_of(find(policy, {"query_parameter", "name"}));
    if (find(policy, {"header", "regex_rewrite"}) != nullptr)
      return "regex_rewrite of a header has no equal in a key template";
    if (header == ":path")
      key = "{uri}";
    else if (header == ":authority")
      key = "{header:host}";
    else if (header == ":method")
      key = "{method}";
    else if (!header.empty())
      key = fmt::format("{{header:{}}}", header);
    else if (!cookie.empty())
      key = fmt::format("{{cookie:{}}}", cookie);
    else if (!query.empty())
      key = fmt::format("{{query:{}}}", query);
    else if (text_of(find(policy, {"connection_properties", "source_ip"})) == "true")
      key = "{client_ip}";
    else
      return "its hash policy has no equal in a key template";
    return {};
  }

  // Envoy draws a random hash where no policy gives one.
  void check_key(std::size_t index) const {
    const Pool& pool = reading_.out.pools[index];
    if (pool.placed && !keyed_.contains(pool.name))
      note(root_, fmt::format("{}: no route with a hash_policy leads to it, so Envoy places its "
                              "requests at random; the key {{uri}} is written, choose it anew",
                              pool.source_name));
  }

  void note_rest() const {
    for (const config::Entry& entry : root_.entries) {
      if (entry.key == "static_resources" || entry.key == "clusters") continue;
      reading_.note(entry.place,
                    fmt::format("{} {}", entry.key,
                                entry.key == "admin" ? "is admin here, on a port of its own"
                                                     : "is not carried over"));
    }
  }

  const Reading& reading_;
  const Node& root_;
  Names names_;
  std::map<std::string, std::string> keyed_;  // pool -> the key its first route gave
};

}  // namespace

void read_envoy(const Reading& reading) {
  const std::optional<config::Document> document = parse_tree(reading);
  if (document) EnvoyReader(reading, *document->root).read();
}

}  // namespace clockwise::importer
