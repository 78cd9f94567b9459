#include "import/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
class Timeouts {
 public:
  void add(std::string_view name, const std::optional<milliseconds>& span) {
    if (!span) return;
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", name, span_text(*span));
  }
  void write(Text& out) const {
    if (!text_.empty()) line(out, "    timeouts: {{{}}}", text_);
  }

 private:
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

void write_ring(Text& out, const Pool& pool, bool with_key) {
  line(out, "    ring:");
  line(out, "      scheme: {}", ring::to_string(pool.scheme.placement));
  write_parameters(out, pool.scheme);
  if (with_key) line(out, "      key: {}", config::yaml_quoted(pool.key));
  if (!pool.scheme.hash_tag.empty())
    line(out, "      hash_tag: {}", config::yaml_quoted(pool.scheme.hash_tag));
  line(out, "    servers:");
  for (const Server& server : pool.servers) write_server(out, server);
}

void write_pool(Text& out, const Pool& pool) {
  line(out, "  {}:    # {}", scalar(pool.name), printable(pool.source_name));
  line(out, "    protocol: {}", word(pool.protocol));
  write_ring(out, pool, pool.protocol == Protocol::http);
  Timeouts timeouts;
  timeouts.add("connect", pool.connect);
  timeouts.add("response", pool.response);
  timeouts.add("idle", pool.idle);
  timeouts.write(out);
  if (!pool.memcached_key.empty())
    line(out, "    memcached: {{key: {}}}", config::yaml_quoted(pool.memcached_key));
}

void write_listener(Text& out, const Listener& listener) {
  line(out, "  - name: {}", scalar(listener.name));
  line(out, "    address: {}", config::yaml_quoted(listener.address));
  line(out, "    protocol: {}", word(listener.protocol));
  line(out, "    pool: {}", scalar(listener.pool));
  Timeouts timeouts;
  timeouts.add("header", listener.header);
  timeouts.add("body", listener.body);
  timeouts.add("idle", listener.idle);
  timeouts.add("write", listener.write);
  timeouts.write(out);
  if (listener.body_size) line(out, "    limits: {{body_size: {}}}", *listener.body_size);
  if (listener.max_connections)
    line(out, "    limits: {{max_connections: {}}}", *listener.max_connections);
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
    write_ring(out, pool, false);
  }
  return fmt::to_string(out);
}

}  // namespace clockwise::importer
