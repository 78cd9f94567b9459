// haproxy.cfg: backends (and `listen` sections) become pools, `bind` lines listeners.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "config/field.h"
#include "config/values.h"
#include "import/haproxy_key.h"
#include "import/haproxy_syntax.h"
#include "import/model.h"
#include "import/names.h"
#include "import/readers.h"
#include "import/spans.h"

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;
using config::quoted;

constexpr std::uint64_t kMostWeight = 256;
constexpr std::uint64_t kMaxId = 0x7fff'ffff;

std::string_view word(const ConfigLine& line, std::size_t index) {
  return index < line.size() ? std::string_view(line[index].text) : std::string_view();
}

struct Section {
  const ConfigLine* head = nullptr;
  std::vector<const ConfigLine*> lines;
  const Section* defaults = nullptr;  // the section whose settings it starts from
  bool conditional = false;           // it, or a part of it, stands between .if and .endif

  [[nodiscard]] std::string_view kind() const { return word(*head, 0); }
  [[nodiscard]] std::string_view name() const { return word(*head, 1); }
  [[nodiscard]] bool takes_clients() const { return kind() == "frontend" || kind() == "listen"; }
  [[nodiscard]] bool has_servers() const { return kind() == "backend" || kind() == "listen"; }
  [[nodiscard]] bool is_proxy() const { return takes_clients() || has_servers(); }
  // Which lines count is decided when HAProxy starts.
  [[nodiscard]] bool is_open() const {
    return conditional || (defaults != nullptr && defaults->conditional);
  }
};

// What HAProxy refuses, unless only one of the two is there when it starts.
void refuse_second(const Reading& reading, const Word& name, std::string_view what,
                   std::uint32_t first_line, bool open) {
  const std::string message = fmt::format("a second {} {}: the first stands on line {}", what,
                                          quoted(name.text), first_line);
  if (open)
    reading.note(name.place, message);
  else
    reading.problem(name.place, message);
}

// The last line of a section that starts with these words, else that of its defaults.
const ConfigLine* setting(const Section& section, std::string_view first,
                          std::string_view second = {}) {
  for (const Section* at = &section; at != nullptr; at = at->defaults)
    for (auto line = at->lines.rbegin(); line != at->lines.rend(); ++line)
      if (word(**line, 0) == first && (second.empty() || word(**line, 1) == second)) return *line;
  return nullptr;
}

// The timeout of a section; nothing where there is none, or, with a note, none that is one here.
std::optional<milliseconds> timeout_of(const Reading& reading, const Section& section,
                                       std::string_view timeout) {
  const ConfigLine* line = setting(section, "timeout", timeout);
  if (line == nullptr) return std::nullopt;
  const std::optional<milliseconds> span = parse_span(word(*line, 2), 1ms);
  if (span && *span > 0ms) return span;
  reading.note(
      line->front().place,
      fmt::format("timeout {} is not carried over: a timeout here is 1ms to a year", timeout));
  return std::nullopt;
}

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::array kServerAdvice{
    Row{"check", "is health of the pool here"},
    Row{"inter", "is health.interval here"},
    Row{"fastinter", "is health.interval here"},
    Row{"downinter", "is health.interval here"},
    Row{"rise", "is health.rise here"},
    Row{"fall", "is health.fall here"},
    Row{"port", "is not carried over: health is asked at the server's own port"},
    Row{"observe", "is outlier of the pool here"},
    Row{"on-error", "is outlier of the pool here"},
    Row{"error-limit", "is outlier.consecutive_failures here"},
    Row{"maxconn", "is connections.max of the pool here"},
    Row{"minconn", "is not carried over"},
    Row{"maxqueue", "is not carried over: a request that finds no server is answered at once"},
    Row{"slowstart", "is handoff of the pool here: a server takes over its keys by and by"},
    Row{"cookie", "is not carried over: the ring alone decides"},
    Row{"ssl", "is not carried over: servers are asked without TLS"},
    Row{"resolvers", "is not carried over: names are resolved at start and reload, by the system"},
    Row{"init-addr", "is resolve of the pool here: start or lazy"},
    Row{"pool-max-conn", "is connections.max_idle of the pool here"},
};

// Parameters of `server` with a value behind them; all others stand alone.
constexpr std::array<std::string_view, 44> kWithValue{
    "addr",      "agent-addr",   "agent-inter",    "agent-port",   "agent-send",
    "alpn",      "ca-file",      "check-alpn",     "check-proto",  "check-sni",
    "ciphers",   "ciphersuites", "cookie",         "crl-file",     "crt",
    "downinter", "error-limit",  "fall",           "fastinter",    "guid",
    "hash-key",  "id",           "init-addr",      "inter",        "log-proto",
    "max-reuse", "maxconn",      "maxqueue",       "minconn",      "namespace",
    "observe",   "on-error",     "on-marked-down", "on-marked-up", "pool-max-conn",
    "port",      "proto",        "resolve-prefer", "resolvers",    "rise",
    "slowstart", "sni",          "track",          "weight"};

bool takes_value(std::string_view parameter) {
  return std::find(kWithValue.begin(), kWithValue.end(), parameter) != kWithValue.end() ||
         parameter == "source" || parameter == "verify" || parameter == "verifyhost" ||
         parameter == "resolve-net" || parameter == "resolve-opts" || parameter == "ws" ||
         parameter == "pool-purge-delay" || parameter == "pool-low-conn" || parameter == "usesrc" ||
         parameter == "tcp-ut" || parameter == "ssl-max-ver" || parameter == "ssl-min-ver" ||
         parameter == "redir" || parameter == "shard";
}

// What a `server` line says, on top of its section's `default-server`.
struct ServerFacts {
  std::uint64_t weight = 1;
  std::uint64_t id = 0;
  bool disabled = false;
  bool backup = false;
  bool other_hash_key = false;
};

class BackendReader {
 public:
  BackendReader(const Reading& reading, const Section& section)
      : reading_(reading), section_(section) {}

  void read(Names& pools) {
    pool_.source_name = fmt::format("{} {}", section_.kind(), section_.name());
    read_default_server();
    for (const ConfigLine* line : section_.lines) {
      if (word(*line, 0) == "server") add_server(*line);
      // Its servers take ids as well, so that all behind it have others.
      if (word(*line, 0) == "server-template")
        lose(*line, "server-template is not read; write its servers as server lines, in its place");
    }
    if (all_.empty())
      return reading_.leave_out(
          reading_.source, section_.head->front().place,
          fmt::format("{}: has no server, so it becomes no pool", pool_.source_name));
    pool_.name = pools.take(name_from(section_.name(), "pool"));
    pin_ids();
    choose_scheme();
    if (section_.is_open())
      lose(*section_.head,
           "which of its lines count is decided by .if when HAProxy starts; write those that do, "
           "and import that");
    pool_.connect = timeout_of(reading_, section_, "connect");
    pool_.response = timeout_of(reading_, section_, "server");
    reading_.out.pools.push_back(std::move(pool_));
  }

 private:
  struct Listed {
    Server server;
    bool backup = false;
  };

  void problem(const ConfigLine& line, std::size_t at, std::string_view message) const {
    reading_.problem(line[at].place, fmt::format("{}: {}", pool_.source_name, message));
  }
  void note(const ConfigLine& line, std::string_view message) const {
    reading_.note(line.front().place, fmt::format("{}: {}", pool_.source_name, message));
  }
  void lose(const ConfigLine& line, std::string why) {
    note(line, "keys will move: " + why);
    pool_.moves = std::move(why);
  }

  // The `default-server` lines of the defaults count first, then the section's own.
  void read_default_server() {
    for (const Section* at : {section_.defaults, &section_})
      for (const ConfigLine* line : at != nullptr ? at->lines : std::vector<const ConfigLine*>())
        if (word(*line, 0) == "default-server") parameters(*line, 1, default_);
  }

  void add_server(const ConfigLine& line) {
    if (line.size() < 3) return problem(line, 0, "a server needs a name and an address");
    const auto [known, fresh] = servers_.try_emplace(line[1].text, line[1].place.line);
    if (!fresh) refuse_second(reading_, line[1], "server", known->second, section_.is_open());
    ServerFacts facts = default_;
    facts.id = 0;
    parameters(line, 3, facts);
    Listed listed;
    listed.backup = facts.backup;
    listed.server.name = names_.take(name_from(word(line, 1), "server"));
    listed.server.address = address_of(line);
    listed.server.weight = static_cast<double>(facts.weight);
    listed.server.id = static_cast<std::uint32_t>(facts.id);
    listed.server.down = facts.disabled;
    if (facts.backup)
      note(line, fmt::format("the backup server {} is left out: put it into a pool of its own and "
                             "name that as fallback",
                             quoted(word(line, 1))));
    if (facts.other_hash_key) lose(line, "hash-key places a server by something else than its id");
    all_.push_back(std::move(listed));
  }

  void parameters(const ConfigLine& line, std::size_t from, ServerFacts& facts) {
    for (std::size_t i = from; i < line.size(); ++i) {
      const std::string_view name = word(line, i);
      const std::string_view value = takes_value(name) ? word(line, i + 1) : std::string_view();
      parameter(line, i, name, value, facts);
      if (takes_value(name)) ++i;
    }
  }

  void parameter(const ConfigLine& line, std::size_t at, std::string_view name,
                 std::string_view value, ServerFacts& facts) {
    if (name == "weight") return number(line, at, value, 0, kMostWeight, facts.weight);
    if (name == "id") return number(line, at, value, 1, kMaxId, facts.id);
    if (name == "disabled" || name == "enabled") {
      facts.disabled = name == "disabled";
    } else if (name == "backup" || name == "no-backup") {
      facts.backup = name == "backup";
    } else if (name == "hash-key") {
      facts.other_hash_key = value != "id";
    } else {
      const auto row = std::find_if(kServerAdvice.begin(), kServerAdvice.end(),
                                    [&](const Row& r) { return r.first == name; });
      const std::string message =
          fmt::format("server parameter {} {}", name,
                      row != kServerAdvice.end() ? row->second : "is not carried over");
      // A default of many sections is noted once.
      if (word(line, 0) == "server")
        note(line, message);
      else
        reading_.note(line.front().place, message);
    }
  }

  void number(const ConfigLine& line, std::size_t at, std::string_view value, std::uint64_t low,
              std::uint64_t high, std::uint64_t& out) const {
    const auto parsed = config::parse_integer(value, low, high);
    if (parsed)
      out = *parsed;
    else
      problem(line, at,
              fmt::format("{} {} is not a whole number from {} to {}", word(line, at),
                          quoted(value), low, high));
  }

  // `10.0.0.1:80`, `ipv4@…`, `unix@/path`, `/path`; without a port the one of the client's side.
  std::string address_of(const ConfigLine& line) {
    std::string_view text = word(line, 2);
    for (const std::string_view prefix : {"ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"})
      if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    for (const std::string_view prefix : {"unix@", "uxst@"})
      if (text.starts_with(prefix)) return fmt::format("unix:{}", text.substr(prefix.size()));
    if (text.starts_with('/')) return fmt::format("unix:{}", text);
    if (config::parse_address(text, config::PortRule::connecting)) return std::string(text);
    const std::size_t colon = text.rfind(':');
    const bool v6 = text.find(':') != colon && !text.starts_with('[');
    const std::string guess = v6 ? fmt::format("[{}]{}", text.substr(0, colon), text.substr(colon))
                                 : fmt::format("{}:80", text);
    if (!v6 || !config::parse_address(guess, config::PortRule::connecting))
      note(line, fmt::format("the address {} has no port of its own, {} is written: correct it",
                             quoted(word(line, 2)), quoted(guess)));
    return guess;
  }

  // Ids count for all servers in their order, also for those that are left out, and are pinned.
  void pin_ids() {
    std::vector<ring::Member> members;
    for (const Listed& listed : all_) {
      ring::Member member;
      member.id = listed.server.id;
      members.push_back(std::move(member));
    }
    const std::vector<std::uint32_t> ids = ring::server_ids(members);
    std::vector<Server> source;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      source.push_back(all_[i].server);
      if (all_[i].backup) continue;
      pool_.servers.push_back(all_[i].server);
      pool_.servers.back().id = ids[i];
      kept_.push_back(i);
    }
    source_ = std::move(source);
  }

  void choose_scheme() {
    const ConfigLine* balance = setting(section_, "balance");
    const ConfigLine* type = setting(section_, "hash-type");
    const auto key = balance != nullptr ? haproxy_key(words_of(*balance)) : HaproxyKey{};
    if (!key.placed) return without_key(balance);
    if (type == nullptr || word(*type, 1) != "consistent") return without_ring(type, *balance);
    pool_.key = key.key;
    if (!key.moves.empty()) {
      pool_.moves = key.moves;
      note(*balance, fmt::format("keys will move: {}; ring.key is \"{}\" now, choose it anew",
                                 key.moves, key.key));
    }
    if (!key.note.empty()) note(*balance, key.note);
    read_hash_type(*type);
    if (const ConfigLine* factor = setting(section_, "hash-balance-factor"))
      note(*factor, "hash-balance-factor is bounded_load of the ring here (150 is 1.5)");
    pool_.model = [servers = source_, kept = kept_, scheme = pool_.scheme, cut = key.cut_query] {
      return haproxy_model(servers, kept, scheme, cut);
    };
  }

  static std::vector<std::string_view> words_of(const ConfigLine& line) {
    std::vector<std::string_view> words;
    for (const Word& one : line) words.push_back(one.text);
    return words;
  }

  void read_hash_type(const ConfigLine& type) {
    pool_.scheme.placement = ring::Placement::haproxy;
    const bool named = type.size() > 2 && word(type, 2) != "avalanche";
    pool_.scheme.hash = named ? word(type, 2) : "sdbm";
    pool_.scheme.avalanche = !named || word(type, 3) == "avalanche";
    const auto hashes = ring::facts(ring::Placement::haproxy).hashes;
    if (std::find(hashes.begin(), hashes.end(), pool_.scheme.hash) != hashes.end()) return;
    lose(type, fmt::format("its hash function {} is not known here", quoted(pool_.scheme.hash)));
    pool_.scheme.hash = "sdbm";
  }

  void without_key(const ConfigLine* balance) {
    pool_.placed = false;
    for (Server& server : pool_.servers) server.id = 0;
    note(balance != nullptr ? *balance : *section_.head,
         fmt::format("balance {} looks at no key, so there is no placement to keep: the pool gets "
                     "the scheme clockwise and the key {{uri}}",
                     balance != nullptr ? word(*balance, 1) : "roundrobin"));
  }

  void without_ring(const ConfigLine* type, const ConfigLine& balance) {
    for (Server& server : pool_.servers) server.id = 0;
    lose(type != nullptr ? *type : balance,
         "hash-type map-based has no scheme here, it moves most keys at each change anyway; the "
         "pool gets the scheme clockwise");
  }

  const Reading& reading_;
  const Section& section_;
  Pool pool_;
  Names names_;
  ServerFacts default_;
  std::map<std::string, std::uint32_t> servers_;  // the line of each name
  std::vector<Listed> all_;
  std::vector<Server> source_;
  std::vector<std::size_t> kept_;  // of all_, those in the pool
};

constexpr std::array kAdvice{
    Row{"option", "is not carried over"},
    Row{"use_backend", "is not carried over: add a route of the listener for it"},
    Row{"acl", "is not carried over: routes of a listener match host and path"},
    Row{"http-request", "is not carried over: requests pass unchanged"},
    Row{"http-response", "is not carried over: answers pass unchanged"},
    Row{"redirect", "is not carried over"},
    Row{"stick-table", "is not carried over: the ring alone decides"},
    Row{"stick", "is not carried over: the ring alone decides"},
    Row{"cookie", "is not carried over: the ring alone decides"},
    Row{"compression", "is not carried over: compress on the servers"},
    Row{"retries", "is retry.attempts here, each on the next owner"},
    Row{"http-reuse", "is not needed: connections to servers are always used again"},
    Row{"maxconn", "is limits.max_connections of the listener here"},
    Row{"log", "is access_log here"},
    Row{"http-check", "is health of the pool here"},
    Row{"errorfile", "is not carried over: errors are short plain texts"},
    Row{"stats", "is the admin address here: GET /metrics and /api/v1/pools"},
    Row{"monitor-uri", "is the admin address here: GET /healthz"},
};

constexpr std::array<std::string_view, 10> kReadHere{
    "bind",   "balance",        "hash-type",       "hash-balance-factor",
    "server", "default-server", "default_backend", "timeout",
    "mode",   "server-template"};

class HaproxyReader {
 public:
  explicit HaproxyReader(const Reading& reading) : reading_(reading) {}

  void read() {
    auto parsed = parse_haproxy(reading_.source);
    if (auto* problem = std::get_if<config::Problem>(&parsed))
      return reading_.problems.push_back(std::move(*problem));
    lines_ = std::get<std::vector<ConfigLine>>(std::move(parsed));
    split();
    for (const Section& section : sections_) note_rest(section);
    check_names();
    Names pools;
    for (const Section& section : sections_)
      if (section.has_servers() && is_http(section)) BackendReader(reading_, section).read(pools);
    for (const Section& section : sections_)
      if (section.takes_clients() && is_http(section)) add_listeners(section);
  }

 private:
  static bool starts_section(std::string_view first) {
    constexpr std::array<std::string_view, 17> kSections{
        "global",    "defaults",    "frontend", "backend",   "listen",  "peers",
        "resolvers", "userlist",    "mailers",  "cache",     "program", "http-errors",
        "ring",      "log-forward", "fcgi-app", "crt-store", "traces"};
    return std::find(kSections.begin(), kSections.end(), first) != kSections.end();
  }

  void split() {
    sections_.reserve(lines_.size());
    const Section* defaults = nullptr;
    for (const ConfigLine& line : lines_) {
      if (word(line, 0).starts_with('.')) {
        preprocess(line);
      } else if (starts_section(word(line, 0))) {
        sections_.push_back(
            {.head = &line, .lines = {}, .defaults = defaults, .conditional = !ifs_.empty()});
        Section& section = sections_.back();
        if (section.kind() == "defaults") {
          section.defaults = nullptr;
          defaults = &section;
        }
        use_from(section);
      } else if (sections_.empty()) {
        reading_.problem(line.front().place,
                         fmt::format("{} stands before the first section (global, defaults, …)",
                                     quoted(word(line, 0))));
      } else {
        sections_.back().lines.push_back(&line);
        sections_.back().conditional |= !ifs_.empty();
      }
    }
    for (const ConfigLine* open : ifs_)
      reading_.problem(open->front().place, "the .if is never closed with .endif");
  }

  // The lines of all branches are read: which of them count depends on the machine.
  void preprocess(const ConfigLine& line) {
    const std::string_view first = word(line, 0);
    if (first == ".if") {
      ifs_.push_back(&line);
      reading_.note(line.front().place,
                    ".if is not carried over: what stands before its .endif counts in every case");
    } else if (first == ".elif" || first == ".else" || first == ".endif") {
      if (ifs_.empty())
        reading_.problem(line.front().place, fmt::format("{} without an .if", first));
      else if (first == ".endif")
        ifs_.pop_back();
    } else {
      reading_.note(line.front().place, fmt::format("{} is not carried over", first));
    }
  }

  // A frontend and a backend may share a name, a `listen` is both.
  void check_names() {
    std::map<std::string_view, const Section*> clients, servers;
    for (const Section& section : sections_) {
      if (!section.is_proxy() || section.head->size() < 2) continue;
      const Section* first = nullptr;
      if (section.takes_clients())
        first = clients.try_emplace(section.name(), &section).first->second;
      if (section.has_servers() && (first == nullptr || first == &section))
        first = servers.try_emplace(section.name(), &section).first->second;
      if (first != &section)
        refuse_second(reading_, (*section.head)[1], section.kind(), first->head->front().place.line,
                      section.is_open() || first->is_open());
    }
  }

  // `backend a from some_defaults`
  void use_from(Section& section) {
    const ConfigLine& head = *section.head;
    for (std::size_t i = 1; i + 1 < head.size(); ++i) {
      if (word(head, i) != "from") continue;
      for (const Section& other : sections_)
        if (&other != &section && other.kind() == "defaults" && other.name() == word(head, i + 1))
          section.defaults = &other;
    }
  }

  static bool is_http(const Section& section) {
    const ConfigLine* mode = setting(section, "mode");
    return mode != nullptr && word(*mode, 1) == "http";
  }

  void note_rest(const Section& section) {
    const std::string where = fmt::format("{} {}", section.kind(), section.name());
    if (!section.is_proxy() && section.kind() != "defaults")
      return reading_.note(section.head->front().place,
                           fmt::format("the section {} is not carried over", section.kind()));
    if (section.kind() != "defaults" && !is_http(section)) return leave_out(section, where);
    for (const ConfigLine* line : section.lines) note_line(*line);
  }

  void leave_out(const Section& section, const std::string& where) {
    const ConfigLine* mode = setting(section, "mode");
    const std::string message =
        fmt::format("{} {}: only requests of HTTP are placed by a key, so it is left out", where,
                    mode != nullptr ? fmt::format("is of mode {}", word(*mode, 1))
                                    : "has no mode, which is tcp");
    const config::Place place = section.head->front().place;
    if (section.has_servers())
      reading_.leave_out(reading_.source, place, message);
    else
      reading_.note(place, message);
  }

  void note_line(const ConfigLine& line) {
    const std::string_view first = word(line, 0);
    if (first == "timeout") return note_timeout(line);
    if (std::find(kReadHere.begin(), kReadHere.end(), first) != kReadHere.end()) return;
    const auto row = std::find_if(kAdvice.begin(), kAdvice.end(),
                                  [&](const Row& r) { return r.first == first; });
    const std::string shown = first == "option" || first == "stats" || first == "no"
                                  ? fmt::format("{} {}", first, word(line, 1))
                                  : std::string(first);
    reading_.note(
        line.front().place,
        fmt::format("{} {}", shown, row != kAdvice.end() ? row->second : "is not carried over"));
  }

  void note_timeout(const ConfigLine& line) {
    constexpr std::array<std::string_view, 5> kCarried{"connect", "server", "client",
                                                       "http-request", "http-keep-alive"};
    if (std::find(kCarried.begin(), kCarried.end(), word(line, 1)) == kCarried.end())
      reading_.note(line.front().place,
                    fmt::format("timeout {} is not carried over", word(line, 1)));
  }

  void add_listeners(const Section& section) {
    const std::string pool = pool_of(section);
    if (pool.empty())
      return reading_.note(section.head->front().place,
                           fmt::format("{} {} leads to no pool, so it gets no listener",
                                       section.kind(), section.name()));
    for (const ConfigLine* line : section.lines)
      if (word(*line, 0) == "bind") add_bind(*line, section, pool);
  }

  [[nodiscard]] std::string pool_of(const Section& section) const {
    std::string wanted = fmt::format("listen {}", section.name());
    if (const ConfigLine* backend = setting(section, "default_backend"))
      wanted = fmt::format("backend {}", word(*backend, 1));
    for (const Pool& pool : reading_.out.pools)
      if (pool.source_name == wanted) return pool.name;
    return {};
  }

  void add_bind(const ConfigLine& line, const Section& section, const std::string& pool) {
    for (std::size_t i = 2; i < line.size(); ++i)
      if (word(line, i) == "ssl")
        reading_.note(line.front().place,
                      "bind … ssl: listeners are plain, keep a TLS terminator in front");
    std::string_view rest = word(line, 1);
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      add_listener(line, rest.substr(0, comma), section, pool);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }

  void add_listener(const ConfigLine& line, std::string_view text, const Section& section,
                    const std::string& pool) {
    Listener listener;
    listener.name = names_.take(name_from(section.name(), "web"));
    listener.address = bind_address(text);
    take_first_port(line, listener.address);
    if (!config::parse_address(listener.address, config::PortRule::listening))
      return reading_.note(line.front().place,
                           fmt::format("bind {} is not carried over: a listener here has "
                                       "host:port, [v6]:port or unix:/path",
                                       quoted(text)));
    listener.pool = pool;
    listener.header = timeout_of(reading_, section, "http-request");
    listener.idle = timeout_of(reading_, section, "http-keep-alive");
    listener.body = listener.write = timeout_of(reading_, section, "client");
    for (const Listener& other : reading_.out.listeners)
      if (other.address == listener.address)
        return reading_.note(line.front().place,
                             fmt::format("a second bind on {} is left out", listener.address));
    reading_.out.listeners.push_back(std::move(listener));
  }

  // `:8000-8010`
  void take_first_port(const ConfigLine& line, std::string& address) {
    const std::size_t colon = address.rfind(':');
    const std::size_t dash = address.find('-', colon == std::string::npos ? 0 : colon);
    if (address.starts_with("unix:") || colon == std::string::npos || dash == std::string::npos)
      return;
    reading_.note(line.front().place,
                  fmt::format("bind on the ports {}: a listener here has one, {} is written; add "
                              "one for each other",
                              address.substr(colon + 1), address.substr(0, dash)));
    address.erase(dash);
  }

  static std::string bind_address(std::string_view text) {
    for (const std::string_view prefix : {"ipv4@", "ipv6@"})
      if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    if (text.starts_with("unix@")) return fmt::format("unix:{}", text.substr(5));
    if (text.starts_with('/')) return fmt::format("unix:{}", text);
    const std::string_view port = text.substr(std::min(text.rfind(':'), text.size()));
    if (text.starts_with("*:") || text.starts_with(':')) return fmt::format("0.0.0.0{}", port);
    if (text.starts_with("::") && !text.starts_with("[")) return fmt::format("[::]{}", port);
    return std::string(text);
  }

  const Reading& reading_;
  std::vector<ConfigLine> lines_;
  std::vector<Section> sections_;       // reserved in full, so that pointers to them stay good
  std::vector<const ConfigLine*> ifs_;  // that are open
  Names names_;
};

}  // namespace

void read_haproxy(const Reading& reading) { HaproxyReader(reading).read(); }

}  // namespace clockwise::importer
