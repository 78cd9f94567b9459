#include "import/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>

#include "config/print.h"
#include "import/notes.h"
#include "import/spans.h"

namespace clockwise::importer {
namespace {

using Text = fmt::memory_buffer;

template <class... Args>
void line(Text& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out.push_back('\n');
}

// Words of YAML that are no text unless they are quoted.
constexpr std::array<std::string_view, 9> kNoText{"null", "true", "false", "on", "off",
                                                  "yes",  "no",   "y",     "n"};

// Without quotes where nobody could take it for anything but text.
std::string scalar(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto plain = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool is_plain = !text.empty() && letter(text.front()) &&
                        std::all_of(text.begin(), text.end(), plain) &&
                        std::find(kNoText.begin(), kNoText.end(), lower) == kNoText.end();
  return is_plain ? std::string(text) : config::yaml_quoted(text);
}

std::string_view word(Protocol protocol) {
  return protocol == Protocol::memcached ? "memcached" : "http";
}

// `    timeouts: {connect: 1s, idle: 20s}`; nothing when none is set.
class FlowMap {
 public:
  explicit FlowMap(std::string_view name) : name_(name) {}

  void add(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", name, value);
  }
  void add(std::string_view name, const std::optional<milliseconds>& span) {
    if (span) add(name, span_text(*span));
  }
  template <std::integral Number>
  void add(std::string_view name, const std::optional<Number>& number) {
    if (number) add(name, fmt::to_string(*number));
  }
  void write(Text& out) const {
    if (!text_.empty()) line(out, "    {}: {{{}}}", name_, text_);
  }

 private:
  std::string_view name_;
  std::string text_;
};

void write_parameters(Text& out, const ring::Scheme& scheme) {
  using ring::Placement;
  if (scheme.placement == Placement::twemproxy) {
    line(out, "      hash: {}", scheme.hash);
    line(out, "      distribution: {}", scheme.distribution);
  } else if (scheme.placement == Placement::haproxy) {
    line(out, "      hash: {}", scheme.hash);
    line(out, "      avalanche: {}", scheme.avalanche.value_or(false));
  } else if (scheme.placement == Placement::envoy) {
    line(out, "      hash: {}", scheme.hash);
    line(out, "      min_size: {}", scheme.min_size);
    line(out, "      max_size: {}", scheme.max_size);
  } else if (scheme.placement == Placement::maglev) {
    line(out, "      table: {}", scheme.table);
  }
}

void write_server(Text& out, const Server& server) {
  std::string text = fmt::format("name: {}, address: {}", scalar(server.name),
                                 config::yaml_quoted(server.address));
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format(", {}: {}", key, value);
  };
  if (!server.label.empty()) add("label", config::yaml_quoted(server.label));
  if (server.id != 0) add("id", fmt::to_string(server.id));
  if (server.weight != 1) add("weight", fmt::format("{:.0f}", server.weight));
  if (!server.zone.empty()) add("zone", config::yaml_quoted(server.zone));
  if (server.down) add("state", "down");
  line(out, "      - {{{}}}", text);
}

// Its protocol, which other settings are read by, its ring and its servers.
void write_placement(Text& out, const Pool& pool, bool with_key) {
  line(out, "    protocol: {}", word(pool.protocol));
  line(out, "    ring:");
  line(out, "      scheme: {}", ring::to_string(pool.scheme.placement));
  write_parameters(out, pool.scheme);
  if (with_key) line(out, "      key: {}", config::yaml_quoted(pool.key));
  if (!pool.scheme.hash_tag.empty())
    line(out, "      hash_tag: {}", config::yaml_quoted(pool.scheme.hash_tag));
  line(out, "    servers:");
  for (const Server& server : pool.servers) write_server(out, server);
}

void write_ejection(Text& out, const Ejection& ejection) {
  line(out, "    outlier: {{consecutive_failures: {}, eject: {}}}", ejection.failures,
       span_text(ejection.span));
  line(out, "    failover: next");
}

void write_memcached(Text& out, const Pool& pool) {
  const Memcached& memcached = pool.memcached;
  Text text;
  if (!memcached.key.empty()) line(text, "      key: {}", config::yaml_quoted(memcached.key));
  if (memcached.gzip_flag) line(text, "      gzip_flag: {}", *memcached.gzip_flag);
  if (!memcached.default_type.empty())
    line(text, "      default_type: {}", config::yaml_quoted(memcached.default_type));
  if (!memcached.types.empty()) line(text, "      types:");
  for (const auto& [extension, type] : memcached.types)
    line(text, "        {}: {}", scalar(extension), config::yaml_quoted(type));
  if (memcached.server_connections)
    line(text, "      server_connections: {}", *memcached.server_connections);
  if (pool.ejection) line(text, "      down_after: {}", pool.ejection->failures);
  if (text.size() == 0) return;
  line(out, "    memcached:");
  out.append(text);
}

void write_pool(Text& out, const Pool& pool) {
  line(out, "  {}:    # {}", scalar(pool.name), printable(pool.source_name));
  write_placement(out, pool, pool.protocol == Protocol::http);
  FlowMap timeouts("timeouts");
  timeouts.add("connect", pool.connect);
  timeouts.add("response", pool.response);
  timeouts.add("idle", pool.idle);
  timeouts.write(out);
  if (pool.protocol == Protocol::http) return;
  if (pool.ejection) write_ejection(out, *pool.ejection);
  if (!pool.fallback.empty()) line(out, "    fallback: {}", scalar(pool.fallback));
  write_memcached(out, pool);
}

void write_listener(Text& out, const Listener& listener) {
  line(out, "  - name: {}", scalar(listener.name));
  line(out, "    address: {}", config::yaml_quoted(listener.address));
  line(out, "    protocol: {}", word(listener.protocol));
  line(out, "    pool: {}", scalar(listener.pool));
  if (!listener.routes.empty()) line(out, "    routes:");
  for (const Route& route : listener.routes)
    line(out, "      - {{match: {{key_prefix: {}}}, pool: {}}}",
         config::yaml_quoted(route.key_prefix), scalar(route.pool));
  FlowMap timeouts("timeouts");
  timeouts.add("header", listener.header);
  timeouts.add("body", listener.body);
  timeouts.add("idle", listener.idle);
  timeouts.add("write", listener.write);
  timeouts.write(out);
  FlowMap limits("limits");
  limits.add("body_size", listener.body_size);
  limits.add("max_connections", listener.max_connections);
  limits.write(out);
}

void write_notes(Text& out, const Import& import) {
  line(out, "# The pools of {} ({}), as `clockwise import` takes them over. Each key stays on the",
       printable(import.file), import.format);
  line(out,
       "# server that has it unless a note says otherwise; `clockwise import --prove` counts.");
  if (import.notes.empty()) return;
  line(out, "#");
  line(out, "# Not carried over, or not as it was:");
  for (const Note& note : import.notes) line(out, "#   {}", note.text());
}

// The default port of the admin address, or the next one that no listener has.
int admin_port(const Import& import) {
  int port = 9901;
  const auto taken = [&](const Listener& listener) {
    return listener.address.ends_with(fmt::format(":{}", port));
  };
  while (std::any_of(import.listeners.begin(), import.listeners.end(), taken)) ++port;
  return port;
}

}  // namespace

std::string to_yaml(const Import& import) {
  Text out;
  write_notes(out, import);
  line(out, "");
  if (import.workers) line(out, "workers: {}\n", *import.workers);
  line(out, "admin:\n  address: 127.0.0.1:{}\n", admin_port(import));
  line(out, "listeners:");
  for (const Listener& listener : import.listeners) write_listener(out, listener);
  line(out, "\npools:");
  for (const Pool& pool : import.pools) write_pool(out, pool);
  return fmt::to_string(out);
}

std::string rings_to_yaml(const Import& import) {
  Text out;
  line(out, "listeners:");
  line(out, "  - {{name: proof, address: 127.0.0.1:0, pool: {}}}",
       scalar(import.pools.front().name));
  line(out, "pools:");
  for (const Pool& pool : import.pools) {
    line(out, "  {}:", scalar(pool.name));
    write_placement(out, pool, false);
  }
  return fmt::to_string(out);
}

}  // namespace clockwise::importer
