// The configuration as plain structs: every option with its default, its unit and the reason for
// the default. This is what the rest of the program sees; YAML exists only in config/.
//
// Values are validated: whoever holds a Config may rely on every rule named here. Immutable once
// loaded, so it may be shared between threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

// What is spoken: by the clients of a listener, by the servers of a pool.
enum class Protocol : std::uint8_t { http, memcached };
[[nodiscard]] std::string_view to_string(Protocol protocol) noexcept;  // "http"

struct Admin {
  Address address{.text = "127.0.0.1:9901", .host = "127.0.0.1", .port = 9901, .path = {}};
  std::string token;  // empty: calls that change something are accepted from loopback only

  friend bool operator==(const Admin&, const Admin&) = default;
};

struct Limits {
  std::uint32_t max_connections = 0;      // per listener; 0 = auto: from the descriptor limit
  std::uint32_t per_client = 0;           // connections of one client address; 0 = no limit
  std::uint32_t requests = 0;             // of one connection, then it is closed; 0 = no limit
  std::uint32_t pipelined = 32;           // requests of one connection answered in one turn
  std::uint32_t header_size = 32 * 1024;  // bytes of one head, request or response
  std::uint32_t uri_size = 16 * 1024;     // bytes of a request target; at most header_size
  std::uint32_t headers = 100;            // field lines of one head; bounds work per request
  std::uint64_t body_size = 0;            // bytes; 0 = no limit, bodies are streamed
  // Of a listener that speaks memcached, bytes of one client: requests without an answer yet, and
  // answers that it has not taken. Beyond, its next request is not read.
  std::uint64_t unanswered = 1ULL << 20;
  std::uint64_t unsent = 1ULL << 20;
  // The same, of all clients of a worker together.
  std::uint64_t buffered = 256ULL << 20;
  // Of a listener that speaks memcached: the share of its time by which an answer may be later so
  // that many share system calls. 0: none.
  double gather = 0.05;

  friend bool operator==(const Limits&, const Limits&) = default;
};

struct ListenerTimeouts {
  // From accept to the first octet of the first request; unset: as `header`.
  std::optional<milliseconds> first_byte;
  milliseconds header{10'000};  // for a whole request head, from its first byte
  milliseconds body{30'000};    // between two reads of a request body
  milliseconds idle{60'000};    // a connection without a request; 0 (memcached only): no limit
  milliseconds write{30'000};   // no progress while sending to the client
  milliseconds request{0};      // for a whole request, head and body; 0: no limit

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

// Where some requests of a listener go: those that have all that is set of the first three.
struct Route {
  std::string host;  // in lower case, without port; "*.example.com": one label more, or several
  std::string path_prefix;           // octet by octet as received
  std::string key_prefix;            // of a listener that speaks memcached, which has only this
  std::string pool;                  // names an entry of Config::pools
  std::optional<std::string> cache;  // instead of the pool's; empty text: none

  friend bool operator==(const Route&, const Route&) = default;
};

struct Listener {
  std::string name;
  Address address;
  Protocol protocol = Protocol::http;
  std::string pool;           // names an entry of Config::pools
  std::vector<Route> routes;  // the first that a request matches; none of them: `pool`
  Limits limits;
  ListenerTimeouts timeouts;
  Forwarded forwarded;
  bool debug_headers = false;  // add Clockwise-Server, -Key-Hash, -Ring to answers

  friend bool operator==(const Listener&, const Listener&) = default;
};

enum class ServerState { active, draining, down };

inline constexpr double kMaxWeight = 10'000;

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

// The default of memcached.key: what nginx pools were filled under, $uri?$args.
inline constexpr std::string_view kItemKey = "{path:decoded}?{query}";

struct Ring {
  ring::Scheme scheme;  // points: 1024 per unit of weight, a spread of about 3 %
  // Template, see http/key_template.h; of a pool of memcached servers `memcached.key`: what its
  // text is escaped to is the key of an item too.
  std::string key = "{uri}";
  // Query parameters that {uri:normalized} drops; may end in *. As a set: sorted, each once, and
  // none where `key` has no {uri:normalized}. Equal lists leave out the same.
  std::vector<std::string> key_ignore;
  // Distinct servers that hold each item of a memcached pool.
  std::uint32_t replicas = 1;

  friend bool operator==(const Ring&, const Ring&) = default;
};

inline constexpr std::uint32_t kMaxReplicas = 16;

// At most this many points in one pool: 64 MiB of positions and owners.
inline constexpr std::uint32_t kMaxPoints = ring::kMaxPoints;

// Causes of a further try.
struct RetryOn {
  bool connect = true;   // no connection to the server
  bool reset = true;     // it ended the connection without an answer
  bool timeout = false;  // no answer within timeouts.response: more load in a brown-out
  bool s502 = false, s503 = false, s504 = false;  // the server's own answer

  friend bool operator==(const RetryOn&, const RetryOn&) = default;
};

struct Retry {
  std::uint32_t attempts = 2;  // further tries after the first, each on the next distinct server
  RetryOn on;
  double budget = 0.2;  // further tries of requests that may have reached a server, as a share of
                        // the pool's requests; a few a second are always allowed

  friend bool operator==(const Retry&, const Retry&) = default;
};

struct PoolTimeouts {
  milliseconds connect{1'000};    // then the next server is tried
  milliseconds response{30'000};  // to the first byte of the answer, and between its bytes
  milliseconds idle{20'000};      // an unused connection is closed; keep it below the server's own
  milliseconds total{60'000};     // from a request to the head of its answer, all tries and waits

  friend bool operator==(const PoolTimeouts&, const PoolTimeouts&) = default;
};

struct Connections {
  std::uint32_t max_idle = 64;        // per server and worker
  std::uint32_t max = 0;              // per server, whole process; 0: no limit
  std::uint32_t queue = 128;          // requests of a worker that wait for one of `max`, per server
  milliseconds queue_timeout{5'000};  // so long each

  friend bool operator==(const Connections&, const Connections&) = default;
};

enum class Resolve { start, lazy };

struct StatusRange {
  std::uint16_t first = 200, last = 399;  // both included
  friend bool operator==(const StatusRange&, const StatusRange&) = default;
};

// Active checks: a request of ours to each server, so that one that is broken is left out before
// clients find it.
struct Health {
  std::string path = "/health";
  std::string method = "GET";  // or HEAD
  std::string host;            // of the request; empty: the server's address
  std::uint16_t port = 0;      // 0: that of the server
  milliseconds interval{2'000};
  double jitter = 0.1;  // of the interval, so that many proxies do not check in step
  milliseconds timeout{1'000};
  std::uint32_t rise = 2;  // checks in a row until a server is usable again
  std::uint32_t fall = 3;  // until it is not
  std::vector<StatusRange> status{{}};
  std::string body;  // text that the answer must hold; empty: any

  friend bool operator==(const Health&, const Health&) = default;
};

// Ejection by what real traffic meets. A failure on a connection that was kept says nothing about
// the server and does not count.
struct Outlier {
  std::uint32_t consecutive_failures = 5;  // 0: not by this
  double success_gap = 0.2;  // a share of successes so far below that of the rest; 0: not by this
  std::uint32_t min_requests = 100;  // of a server in an interval, or it is not judged
  milliseconds interval{10'000};     // in which successes are counted
  milliseconds eject{30'000};        // times the number of ejections in a row
  milliseconds max_eject{300'000};   // but not longer
  double max_ejected = 0.5;          // share of the pool's servers; at least one

  friend bool operator==(const Outlier&, const Outlier&) = default;
};

enum class Failover { next, fail_fast };

// A second request to the next owner when the first is slow; safe methods only.
struct Hedge {
  // Of the latencies seen lately; 0: `after` is a fixed time.
  double quantile = 0.95;
  milliseconds after{0};
  double budget = 0.02;  // share of the pool's requests

  friend bool operator==(const Hedge&, const Hedge&) = default;
};

struct Handoff {
  milliseconds max_window{600'000};  // how long the ring before a change is remembered

  friend bool operator==(const Handoff&, const Handoff&) = default;
};

// How a pool of memcached servers is used. Times below a second count where they are not lifetimes
// of items, which servers take in seconds.
struct Memcached {
  enum class LongKey { hash, reject };
  enum class Layout { raw, http };
  enum class OnReturn { keep, distrust };

  // In front of the pool: HTTP.
  LongKey long_key = LongKey::hash;  // of more than 250 bytes; the key itself is Ring::key
  Layout layout = Layout::raw;       // of a value: the body, or a whole answer with its head
  std::uint32_t gzip_flag = 2;       // bits of an item's flags that say it is gzip; 0: none does
  bool etag = true;                  // the unique of an item as ETag
  std::string default_type = "application/octet-stream";
  std::map<std::string, std::string> types;  // Content-Type by extension of the path
  bool writable = false;                     // PUT and DELETE
  milliseconds ttl{0};           // of what is stored without a word about it; 0: until evicted
  milliseconds max_ttl{0};       // 0: no cap
  bool fill = false;             // what the fallback answers is stored
  milliseconds negative_ttl{0};  // of its 404 and 410; 0: not stored
  milliseconds budget{50};       // time that the pool may cost before the fallback is asked

  // In front of the pool: memcached.
  bool error_on_read = false;  // a get that no server answers is an error, not a miss
  bool allow_flush = false;    // flush_all reaches the servers

  // The servers.
  std::uint32_t server_connections = 1;  // pipelined, for each server and worker
  std::uint32_t down_after = 3;          // failures in a row; then it is asked by probes only
  milliseconds retry_interval{500};      // between two of them
  milliseconds failover_ttl{10'000};     // longest life of what a stand-in stores
  OnReturn on_return = OnReturn::keep;   // what a server that was away holds still

  friend bool operator==(const Memcached&, const Memcached&) = default;
};

struct Pool {
  std::string name;
  Protocol protocol = Protocol::http;
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
  std::optional<Health> health;
  std::optional<Outlier> outlier;
  double panic = 0.5;  // with a smaller share of the servers usable, health is left out of account
  Failover failover = Failover::next;
  std::optional<Hedge> hedge;
  std::optional<std::string> fallback;  // names a pool of http: asked where this one has no answer
  std::optional<std::string> cache;     // names an entry of Config::caches
  Memcached memcached;                  // of a pool that speaks it

  friend bool operator==(const Pool&, const Pool&) = default;
};

// Answers that are kept and given again. What an answer says about itself goes before all of this.
struct Cache {
  enum class SetCookie { bypass, store, strip };

  std::string name;
  // A second store behind the one in memory, which other proxies may share: a pool of memcached
  // servers.
  std::optional<std::string> pool;
  std::string pool_namespace = "clockwise";  // begins each key there
  milliseconds pool_budget{20};              // so long a look-up there may take, then it is a miss
  milliseconds pool_wait{1'000};  // so long a miss waits for what another proxy fetches; 0: not

  std::uint64_t size = 512ULL << 20;      // bytes of all that it holds, heads and index too
  std::uint64_t max_object = 8ULL << 20;  // bytes of one answer; at most a quarter of `size`

  // How long an answer is fresh.
  milliseconds default_ttl{0};            // one that says nothing
  milliseconds negative_ttl{0};           // the same for 404 and 410
  std::optional<double> heuristic = 0.1;  // share of the age since Last-Modified; nothing: off
  double ttl_jitter = 0;  // a random share up to this is taken off, so that what came together does
                          // not go stale together
  std::optional<double> refresh_ahead;  // with a smaller share of its lifetime left, an answer that
                                        // is asked for is fetched anew beside; nothing: off

  // How long it may be given after that.
  milliseconds stale_while_revalidate{0};  // where it does not say
  milliseconds stale_if_error{300'000};    // the same
  milliseconds stale_after{1'000};  // so long the origin may take to validate an answer that may be
                                    // given stale

  // One fetch for many clients that wait.
  bool coalesce = true;
  milliseconds coalesce_timeout{30'000};    // so long each waits, then it asks for itself
  std::uint32_t coalesce_waiters = 10'000;  // of one fetch; further ones ask for themselves
  milliseconds hit_for_miss{120'000};  // so long it is known that an answer is not to be shared,
                                       // and nobody waits for it; 0: not at all
  double finish_fill = 0.5;  // share of a body that must be in for the fetch to go on when its last
                             // client has left

  // What counts.
  // An answer with Set-Cookie is not stored unless it says public or s-maxage, stored, or stored
  // without the field.
  SetCookie set_cookie = SetCookie::bypass;
  bool honour_requests = false;  // max-age, min-fresh, max-stale and no-cache of requests: any
                                 // client could send all its requests to the origin
  std::vector<std::string> targeted{"CDN-Cache-Control"};  // rule before Cache-Control, the first
                                                           // that is valid (RFC 9213)
  bool surrogate_control = false;  // the same for Surrogate-Control, which no client sees

  // What answers are found by: a template of http::HostForm::authority, and key_ignore as in Ring.
  std::string key = "{scheme}://{host}{uri}";
  std::vector<std::string> key_ignore;
  std::uint32_t vary_limit = 100;  // variants of one key; the oldest leaves
  bool show_key = false;           // in Cache-Status

  friend bool operator==(const Cache&, const Cache&) = default;
};

// May one give what the other has kept? Not where other keys name it, nor where fields are in it
// that are not to be given any more.
[[nodiscard]] inline bool same_content(const Cache& a, const Cache& b) noexcept {
  return a.key == b.key && a.key_ignore == b.key_ignore && a.set_cookie == b.set_cookie &&
         a.surrogate_control == b.surrogate_control;
}

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

// When memory runs short new work is turned away early, so that what was admitted stays fast.
struct Overload {
  enum class Memory { automatic, off, fixed };
  Memory memory = Memory::automatic;  // automatic: 85 % of the limit of the control group, if any
  std::uint64_t bytes = 0;            // resident, of the process; with `fixed`

  friend bool operator==(const Overload&, const Overload&) = default;
};

struct Config {
  std::uint32_t workers = 1;  // `auto` is resolved to the number of usable cores
  milliseconds shutdown_timeout{30'000};
  std::string user;  // `user` or `user:group` to become once the ports are taken; empty: stay
  Overload overload;
  Admin admin;
  std::vector<Listener> listeners;
  std::vector<Pool> pools;    // sorted by name
  std::vector<Cache> caches;  // sorted by name
  std::optional<AccessLog> access_log = AccessLog{};
  Metrics metrics;
  std::string state_dir;

  [[nodiscard]] const Pool* pool(std::string_view name) const noexcept {
    for (const Pool& p : pools)
      if (p.name == name) return &p;
    return nullptr;
  }
  [[nodiscard]] const Cache* cache(std::string_view name) const noexcept {
    for (const Cache& c : caches)
      if (c.name == name) return &c;
    return nullptr;
  }

  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace clockwise::config
