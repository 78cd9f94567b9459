// The configuration as plain structs: every option with its default, its unit and the reason for
// the default. This is what the rest of the program sees; YAML exists only in config/.
//
// Values are validated: whoever holds a Config may rely on every rule named here. Immutable once
// loaded, so it may be shared between threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ring/scheme.h"

namespace clockwise::config {

using std::chrono::milliseconds;

// `host:port`, `[v6]:port` or `unix:/path`.
struct Address {
  std::string text;        // as the user wrote it; shown in messages and answers
  std::string host;        // without brackets; empty for a unix socket
  std::uint16_t port = 0;  // 0 only for listeners: take a free one
  std::string path;        // of a unix socket, else empty

  [[nodiscard]] bool is_unix() const noexcept { return !path.empty(); }
  friend bool operator==(const Address&, const Address&) = default;
};

struct Admin {
  Address address{.text = "127.0.0.1:9901", .host = "127.0.0.1", .port = 9901, .path = {}};
  std::string token;  // empty: calls that change something are accepted from loopback only

  friend bool operator==(const Admin&, const Admin&) = default;
};

struct Limits {
  std::uint32_t max_connections = 0;      // per listener; 0 = auto: from the descriptor limit
  std::uint32_t header_size = 32 * 1024;  // bytes of one head, request or response
  std::uint32_t headers = 100;            // field lines of one head; bounds work per request
  std::uint64_t body_size = 0;            // bytes; 0 = no limit, bodies are streamed

  friend bool operator==(const Limits&, const Limits&) = default;
};

struct ListenerTimeouts {
  milliseconds header{10'000};  // for a whole request head, from its first byte
  milliseconds body{30'000};    // between two reads of a request body
  milliseconds idle{60'000};    // a keep-alive connection without a request
  milliseconds write{30'000};   // no progress while sending to the client

  friend bool operator==(const ListenerTimeouts&, const ListenerTimeouts&) = default;
};

enum class ForwardedStyle { x_forwarded_for, forwarded, off };

// An address block such as 10.0.0.0/8 or ::1/128.
struct Network {
  std::string text;
  friend bool operator==(const Network&, const Network&) = default;
};

struct Forwarded {
  std::vector<Network> trust{{"127.0.0.0/8"}};  // peers whose X-Forwarded-* are kept and extended
  ForwardedStyle by = ForwardedStyle::x_forwarded_for;

  friend bool operator==(const Forwarded&, const Forwarded&) = default;
};

struct Listener {
  std::string name;
  Address address;
  std::string pool;  // names an entry of Config::pools
  Limits limits;
  ListenerTimeouts timeouts;
  Forwarded forwarded;
  bool debug_headers = false;  // add Clockwise-Server, -Key-Hash, -Ring to answers

  friend bool operator==(const Listener&, const Listener&) = default;
};

enum class ServerState { active, draining, down };

struct Server {
  std::string name;  // identity on the ring: [A-Za-z0-9._:-]{1,64}
  Address address;
  double weight = 1;  // 0 to 10000, may be fractional; 0: in the list but owns no key
  std::string zone;
  ServerState state = ServerState::active;
  std::optional<std::string> label;  // what the ring hashes instead of `name`
  std::uint32_t id = 0;              // the peer's number for it (scheme haproxy); 0: automatic

  [[nodiscard]] const std::string& ring_label() const noexcept { return label ? *label : name; }
  // A server off the ring is no owner: weight 0, draining or down.
  [[nodiscard]] bool on_ring() const noexcept { return weight > 0 && state == ServerState::active; }
  friend bool operator==(const Server&, const Server&) = default;
};

// The servers of a list as the ring sees them, in its order.
[[nodiscard]] std::vector<ring::Member> members_of(const std::vector<Server>& servers);

struct Ring {
  ring::Scheme scheme;        // points: 1024 per unit of weight, a spread of about 3 %
  std::string key = "{uri}";  // template, see http/key_template.h
  std::vector<std::string>
      key_ignore;  // query parameters that {uri:normalized} drops; may end in *

  friend bool operator==(const Ring&, const Ring&) = default;
};

// At most this many points in one pool: 64 MiB of positions and owners.
inline constexpr std::uint32_t kMaxPoints = ring::kMaxPoints;

struct Retry {
  std::uint32_t attempts = 2;  // further tries after the first, each on the next distinct server

  friend bool operator==(const Retry&, const Retry&) = default;
};

struct PoolTimeouts {
  milliseconds connect{1'000};    // then the next server is tried
  milliseconds response{30'000};  // to the first byte of the answer, and between its bytes
  milliseconds idle{20'000};      // an unused connection is closed; keep it below the server's own

  friend bool operator==(const PoolTimeouts&, const PoolTimeouts&) = default;
};

struct Connections {
  std::uint32_t max_idle = 64;  // per server and worker
  std::uint32_t max = 0;        // per server, whole process; 0: no limit

  friend bool operator==(const Connections&, const Connections&) = default;
};

enum class Resolve { start, lazy };

struct Handoff {
  milliseconds max_window{600'000};  // how long the ring before a change is remembered

  friend bool operator==(const Handoff&, const Handoff&) = default;
};

struct Pool {
  std::string name;
  Ring ring;
  std::vector<Server> servers;              // in the order of the file
  std::optional<std::string> servers_file;  // set: `servers` came from this path (resolved)
  Handoff handoff;
  double max_remap = 0.6;   // a reload that moves a larger share of the keys is refused
  double max_shrink = 0.5;  // so is one that drops a larger share of the servers
  Retry retry;
  PoolTimeouts timeouts;
  Resolve resolve = Resolve::start;
  Connections connections;

  friend bool operator==(const Pool&, const Pool&) = default;
};

enum class LogFormat { json, combined };

struct AccessLog {
  std::string file = "stderr";  // stderr, stdout or a path
  LogFormat format = LogFormat::json;
  double sample = 1.0;  // share of requests that are logged

  friend bool operator==(const AccessLog&, const AccessLog&) = default;
};

enum class PerBackend { full, basic, off };

struct Metrics {
  PerBackend per_backend = PerBackend::full;
  milliseconds removed_grace{600'000};  // counters of a removed server stay this long
  std::uint32_t max_series = 50'000;

  friend bool operator==(const Metrics&, const Metrics&) = default;
};

struct Config {
  std::uint32_t workers = 1;  // `auto` is resolved to the number of usable cores
  milliseconds shutdown_timeout{30'000};
  Admin admin;
  std::vector<Listener> listeners;
  std::vector<Pool> pools;  // sorted by name
  std::optional<AccessLog> access_log = AccessLog{};
  Metrics metrics;
  std::string state_dir;

  [[nodiscard]] const Pool* pool(std::string_view name) const noexcept {
    for (const Pool& p : pools)
      if (p.name == name) return &p;
    return nullptr;
  }

  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace clockwise::config
