// `server { … }` of nginx.conf: where clients connect, and which pool answers them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/field.h"
#include "config/values.h"
#include "import/nginx_advice.h"
#include "import/nginx_parts.h"
#include "import/spans.h"

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;
using config::quoted;

using Scopes = std::vector<const Directive*>;  // the blocks around a directive, innermost last

// A directive that hands requests to a pool.
struct Pass {
  const Directive* directive = nullptr;
  Scopes scopes;
  std::size_t pool = 0;     // index in Import::pools
  std::string match = "/";  // the location it stands in
};

// The setting that holds inside these blocks; nothing where none of them has it.
const Directive* effective(const Scopes& scopes, std::string_view name) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    for (const Directive& child : (*scope)->children)
      if (child.name() == name) return &child;
  return nullptr;
}

constexpr std::array<std::string_view, 18> kReadHere{"listen",
                                                     "location",
                                                     "server",
                                                     "upstream",
                                                     "set",
                                                     "proxy_pass",
                                                     "memcached_pass",
                                                     "proxy_connect_timeout",
                                                     "proxy_read_timeout",
                                                     "memcached_connect_timeout",
                                                     "memcached_read_timeout",
                                                     "memcached_gzip_flag",
                                                     "error_page",
                                                     "keepalive_timeout",
                                                     "client_header_timeout",
                                                     "client_body_timeout",
                                                     "send_timeout",
                                                     "client_max_body_size"};

bool is_read_here(std::string_view name) {
  return std::find(kReadHere.begin(), kReadHere.end(), name) != kReadHere.end();
}

// `80`, `*:80`, `10.0.0.1`, `[::]:80`, `unix:/run/a.sock`.
std::string listen_address(std::string_view text) {
  if (text.starts_with("unix:")) return std::string(text);
  if (text.find_first_not_of("0123456789") == std::string_view::npos)
    return fmt::format("0.0.0.0:{}", text);
  if (text.starts_with("*:")) return fmt::format("0.0.0.0:{}", text.substr(2));
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && !text.ends_with(']');
  return has_port ? std::string(text) : fmt::format("{}:80", text);
}

std::string_view without_scheme(std::string_view target) {
  const std::size_t scheme = target.find("://");
  return scheme == std::string_view::npos ? target : target.substr(scheme + 3);
}

// The upstream that proxy_pass names.
std::string_view host_of(std::string_view target) {
  target = without_scheme(target);
  return target.substr(0, target.find('/'));
}

// Extensions in any case are one; the last to name it wins, as in nginx.
std::vector<std::pair<std::string, std::string>> types_of(const Directive& types) {
  std::map<std::string, std::string> found;
  for (const Directive& type : types.children)
    for (std::size_t i = 1; i < type.words.size(); ++i) {
      const std::string extension = lower_case(type.words[i].text);
      if (!extension.empty() && extension.find_first_of("./") == std::string::npos)
        found[extension] = type.name();
    }
  return {found.begin(), found.end()};
}

// nginx knows no flags unless it is told, and has types of its own.
void carry_content(const Reading& reading, Memcached& memcached, const Scopes& scopes) {
  const Directive* const flag = effective(scopes, "memcached_gzip_flag");
  const auto bits =
      config::parse_integer(flag == nullptr ? "0" : flag->parameter(1), 0, UINT32_MAX);
  if (bits)
    memcached.gzip_flag = static_cast<std::uint32_t>(*bits);
  else
    note_advice(reading, *flag);
  const Directive* const type = effective(scopes, "default_type");
  memcached.default_type = type == nullptr ? "text/plain" : type->parameter(1);
  const Directive* const types = effective(scopes, "types");
  if (types == nullptr)
    memcached.types = {{"gif", "image/gif"}, {"html", "text/html"}, {"jpg", "image/jpeg"}};
  else
    memcached.types = types_of(*types);
}

// Where what memcached does not have is answered: `error_page 404 = @name`.
const Directive* page_of_misses(const Scopes& scopes) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    bool any = false;  // those of an outer block count no more
    for (const Directive& child : (*scope)->children) {
      if (child.name() != "error_page") continue;
      any = true;
      const bool miss = std::ranges::find(child.words, "404", &Word::text) != child.words.end();
      if (miss && child.words.back().text.starts_with('@')) return &child;
    }
    if (any) return nullptr;
  }
  return nullptr;
}

class ServersReader {
 public:
  ServersReader(const Reading& reading, const Variables& variables)
      : reading_(reading), variables_(variables) {}

  void read(const Directive& block) {
    if (block.name() == "server") {
      read_server(block, {});
    } else {
      note_rest(block);
      for (const Directive& child : block.children)
        if (child.name() == "server" && child.block) read_server(child, {&block});
    }
    note_error_pages();
  }

 private:
  void read_server(const Directive& server, Scopes scopes) {
    note_rest(server);
    scopes.push_back(&server);
    std::vector<Pass> passes;
    collect(scopes, "/", passes);
    for (const Pass& pass : passes) carry_timeouts(pass);
    if (passes.empty()) return note_without_pool(server);
    const auto root = std::find_if(passes.begin(), passes.end(),
                                   [](const Pass& pass) { return pass.match == "/"; });
    const Pass& main = root != passes.end() ? *root : passes.front();
    for (const Pass& pass : passes) note_other(pass, main);
    add_listeners(server, scopes, main);
  }

  void note_without_pool(const Directive& server) {
    note(reading_, server, "this server leads to no upstream, so it gets no listener");
  }

  // Every proxy_pass to an upstream, at any depth.
  void collect(const Scopes& scopes, const std::string& match, std::vector<Pass>& passes) {
    for (const Directive& child : scopes.back()->children) {
      if (child.name() == "proxy_pass" || child.name() == "memcached_pass")
        add_pass(child, scopes, match, passes);
      if (!child.block) continue;
      Scopes inner = scopes;
      inner.push_back(&child);
      const bool location = child.name() == "location";
      if (!location && child.name() != "if" && child.name() != "limit_except") continue;
      note_rest(child);
      collect(inner, location ? match_of(child) : match, passes);
    }
  }

  static std::string match_of(const Directive& location) {
    std::string match;
    for (std::size_t i = 1; i < location.words.size(); ++i)
      match += (i > 1 ? " " : "") + location.words[i].text;
    return match == "^~ /" ? "/" : match;
  }

  void add_pass(const Directive& pass, const Scopes& scopes, const std::string& match,
                std::vector<Pass>& passes) {
    const bool memcached = pass.name() == "memcached_pass";
    if (pass.parameter(1).starts_with("https://"))
      note(reading_, pass, "proxy_pass https: servers are asked without TLS here");
    const std::string_view target = without_scheme(pass.parameter(1));
    const std::string_view host = host_of(target);
    const std::optional<std::size_t> pool = pool_of(host);
    if (!pool)
      return note(reading_, pass,
                  fmt::format("{} {} names no upstream block: a single server needs no placement, "
                              "add a pool and a route for it by hand",
                              pass.name(), quoted(pass.parameter(1))));
    if (host.size() < target.size() && target != fmt::format("{}{}", host, match))
      note(reading_, pass,
           fmt::format(
               "proxy_pass {} replaces the path of the location; here targets pass unchanged",
               quoted(pass.parameter(1))));
    if (memcached) make_memcached(reading_.out.pools[*pool], pass, scopes);
    passes.push_back({.directive = &pass, .scopes = scopes, .pool = *pool, .match = match});
  }

  [[nodiscard]] std::optional<std::size_t> pool_of(std::string_view upstream) const {
    for (std::size_t i = 0; i < reading_.out.pools.size(); ++i)
      if (reading_.out.pools[i].source_name == fmt::format("upstream {}", upstream)) return i;
    return std::nullopt;
  }

  // What nginx asks memcached for is $memcached_key; it hashes what `hash` says.
  void make_memcached(Pool& pool, const Directive& pass, const Scopes& scopes) {
    const bool first = pool.protocol != Protocol::memcached;  // its settings are the pool's
    pool.protocol = Protocol::memcached;
    if (first) carry_content(reading_, pool.memcached, scopes);
    if (pool.fallback.empty()) carry_fallback(pool, scopes);
    const auto key = memcached_key(scopes);
    if (!key) {
      pool.moves =
          fmt::format("its $memcached_key cannot be written here, since {}", key.error().message);
      return note(reading_, pass,
                  fmt::format("{}: keys will move: {}", pool.source_name, pool.moves));
    }
    pool.memcached.key = *key;
    if (pool.placed)
      note(reading_, pass,
           fmt::format("{}: of a key with a % or an octet up to 0x20 in it, nginx hashes the plain "
                       "form, here what memcached is asked for (%25, %20): such keys may move",
                       pool.source_name));
    if (!pool.placed || pool.key == *key || !pool.moves.empty()) return;
    pool.moves = fmt::format("it hashes {} and stores under {}; here one key serves both",
                             quoted(pool.key), quoted(*key));
    note(reading_, pass, fmt::format("{}: keys will move: {}", pool.source_name, pool.moves));
  }

  // `error_page 404 = @name` around a memcached_pass, where that location leads to a pool.
  void carry_fallback(Pool& pool, const Scopes& scopes) {
    const Directive* const page = page_of_misses(scopes);
    if (page == nullptr) return;
    const auto server = std::ranges::find(scopes, "server", &Directive::name);
    if (server == scopes.end()) return;
    for (const Directive& location : (*server)->children) {
      if (location.name() != "location" || location.parameter(1) != page->words.back().text)
        continue;
      const auto pass = std::ranges::find(location.children, "proxy_pass", &Directive::name);
      if (pass == location.children.end()) return;
      const auto other = pool_of(host_of(pass->parameter(1)));
      if (!other || reading_.out.pools[*other].protocol != Protocol::http) return;
      pool.fallback = reading_.out.pools[*other].name;
      carried_pages_.insert(page);
    }
  }

  void note_error_pages() {
    for (const Directive* page : pages_)
      if (!carried_pages_.contains(page)) note_advice(reading_, *page);
    pages_.clear();
  }

  [[nodiscard]] Result<std::string> memcached_key(const Scopes& scopes) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      for (const Directive& child : (*scope)->children)
        if (child.name() == "set" && child.parameter(1) == "$memcached_key")
          return nginx_key(child.parameter(2), variables_);
    return fail("it is not set around memcached_pass");
  }

  void carry_timeouts(const Pass& pass) {
    Pool& pool = reading_.out.pools[pass.pool];
    const std::string prefix = pool.protocol == Protocol::memcached ? "memcached" : "proxy";
    carry(pool.connect, effective(pass.scopes, prefix + "_connect_timeout"), pool.source_name);
    carry(pool.response, effective(pass.scopes, prefix + "_read_timeout"), pool.source_name);
  }

  // The first to set a value wins; another value for the same pool is noted.
  void carry(std::optional<milliseconds>& out, const Directive* setting, std::string_view whose) {
    if (setting == nullptr) return;
    const std::optional<milliseconds> span = parse_span(setting->parameter(1), 1s);
    if (!span || *span == 0ms)
      note(reading_, *setting,
           fmt::format("{} {} is not carried over: a timeout here is 1ms to a year",
                       setting->name(), quoted(setting->parameter(1))));
    else if (!out)
      out = span;
    else if (*out != *span)
      note(reading_, *setting,
           fmt::format("{} {} is not carried over: {} has {} already, and one value here",
                       setting->name(), setting->parameter(1), whose, span_text(*out)));
  }

  void note_other(const Pass& pass, const Pass& main) {
    const std::string& pool = reading_.out.pools[pass.pool].name;
    if (pass.match.starts_with('@') && reading_.out.pools[main.pool].fallback == pool) return;
    if (pass.pool != main.pool)
      note(
          reading_, *pass.directive,
          fmt::format("location {} leads to pool {}: the listener's pool is {}, add a route for it",
                      pass.match, pool, reading_.out.pools[main.pool].name));
    else if (&pass == &main && pass.match != "/")
      note(reading_, *pass.directive,
           fmt::format("only location {} leads to pool {}: here every request does", pass.match,
                       pool));
  }

  void add_listeners(const Directive& server, const Scopes& scopes, const Pass& main) {
    bool any = false;
    for (const Directive& child : server.children) {
      if (child.name() != "listen") continue;
      any = true;
      add_listener(child, listen_address(child.parameter(1)), scopes, main);
    }
    if (!any) add_listener(server, "0.0.0.0:80", scopes, main);
  }

  void add_listener(const Directive& at, std::string address, const Scopes& scopes,
                    const Pass& main) {
    if (at.name() == "listen") note_listen_options(at);
    for (const Listener& other : reading_.out.listeners) {
      if (other.address != address) continue;
      return note(
          reading_, at,
          fmt::format("a second server on {} leads to pool {}: the listener {} has the pool "
                      "{}, add a route by host",
                      address, reading_.out.pools[main.pool].name, other.name, other.pool));
    }
    Listener listener{.name = names_.take("web"),
                      .address = std::move(address),
                      .pool = reading_.out.pools[main.pool].name};
    carry(listener.header, effective(scopes, "client_header_timeout"), "the listener");
    carry(listener.body, effective(scopes, "client_body_timeout"), "the listener");
    carry(listener.idle, effective(scopes, "keepalive_timeout"), "the listener");
    carry(listener.write, effective(scopes, "send_timeout"), "the listener");
    carry_body_size(listener, effective(scopes, "client_max_body_size"));
    reading_.out.listeners.push_back(std::move(listener));
  }

  void note_listen_options(const Directive& listen) {
    for (std::size_t i = 2; i < listen.words.size(); ++i) {
      const std::string& option = listen.words[i].text;
      if (option == "default_server" || option == "default" || option == "reuseport") continue;
      if (option == "ssl")
        note(reading_, listen, "listen … ssl: listeners are plain, keep a TLS terminator in front");
      else
        note(reading_, listen, fmt::format("listen … {} is not carried over", option));
    }
  }

  void carry_body_size(Listener& listener, const Directive* setting) {
    if (setting == nullptr) return;
    const auto size = config::parse_size(setting->parameter(1), 0, 1ULL << 60);
    if (size)
      listener.body_size = *size;
    else
      note(reading_, *setting,
           fmt::format("client_max_body_size {} is not carried over: limits.body_size wants a size",
                       quoted(setting->parameter(1))));
  }

  void note_rest(const Directive& block) {
    if (block.name() == "if") note_advice(reading_, block);
    const bool memcached = std::ranges::find(block.children, "memcached_pass", &Directive::name) !=
                           block.children.end();
    for (const Directive& child : block.children) {
      if (child.name() == "error_page") pages_.push_back(&child);
      if (memcached && (child.name() == "types" || child.name() == "default_type")) continue;
      if (!is_read_here(child.name()) && child.name() != "if") note_advice(reading_, child);
    }
  }

  const Reading& reading_;
  const Variables& variables_;
  Names names_;
  std::vector<const Directive*> pages_;       // error_page, to be noted unless
  std::set<const Directive*> carried_pages_;  // it became a fallback
};

}  // namespace

void read_servers(const Reading& reading, const std::vector<const Directive*>& https,
                  const Variables& variables) {
  ServersReader servers(reading, variables);
  for (const Directive* block : https) servers.read(*block);
}

}  // namespace clockwise::importer
