// What an import makes of another program's configuration: pools in the scheme that keeps every key
// where it is, listeners, and notes on everything that could not be carried over.
//
// Plain values between the readers of the formats (nginx.cpp, haproxy.cpp, …), the writer of the
// YAML (write.h) and the proof (prove.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ring/scheme.h"

namespace clockwise::importer {

using std::chrono::milliseconds;

struct Server {
  std::string name = {};     // identity here, made from the text of the source (names.h)
  std::string address = {};  // host:port, [v6]:port or unix:/path
  std::string label = {};    // the text that the source hashes; empty: its scheme hashes none
  double weight = 1;
  std::uint32_t id = 0;  // haproxy: pinned, so that a change of the list renumbers nobody
  std::string zone = {};
  bool down = false;
};

enum class Protocol : std::uint8_t { http, memcached };

// What a pool of memcached servers has beside its ring; what is left out has its default here.
struct Memcached {
  std::string key = {};  // filled by nginx
  std::optional<std::uint32_t> gzip_flag = {};
  std::string default_type = {};
  std::vector<std::pair<std::string, std::string>> types = {};  // extension, Content-Type
  std::optional<std::uint32_t> server_connections = {};
};

// A server that fails so often in a row leaves its keys to others for a while.
struct Ejection {
  std::uint32_t failures = 0;
  milliseconds span{0};
};

// The owner of a key as the source places it, by index into Pool::servers: the recipe of the peer
// written down a second time, without the code of ring/ (see model.h).
using Model = std::function<std::size_t(std::string_view key)>;

struct Pool {
  std::string name = {};
  std::string source_name = {};  // "upstream pages"
  Protocol protocol = Protocol::http;
  ring::Scheme scheme;
  std::string key = "{uri}";  // http pools
  Memcached memcached;        // memcached pools
  std::vector<Server> servers;
  std::optional<milliseconds> connect = {};
  std::optional<milliseconds> response = {};
  std::optional<milliseconds> idle = {};
  std::optional<Ejection> ejection = {};  // memcached pools
  std::string fallback = {};              // Pool::name, memcached pools
  // Why keys will change their server all the same; empty: they stay.
  std::string moves = {};
  // False: the source spreads requests without looking at a key, so there is no placement to keep.
  bool placed = true;
  std::function<Model()> model;  // makes it, which takes a while; empty: there is none
};

// Of a listener that speaks memcached; longer prefixes stand first.
struct Route {
  std::string key_prefix;
  std::string pool;  // Pool::name
};

struct Listener {
  std::string name = {};
  std::string address = {};
  Protocol protocol = Protocol::http;
  std::string pool = {};  // Pool::name
  std::vector<Route> routes = {};
  std::optional<milliseconds> header = {};
  std::optional<milliseconds> body = {};
  std::optional<milliseconds> idle = {};
  std::optional<milliseconds> write = {};
  std::optional<std::uint64_t> body_size = {};
  std::optional<std::uint64_t> max_connections = {};
};

// One thing that was not carried over, and what to do about it.
struct Note {
  std::string file;
  std::uint32_t line = 0;
  std::string message;              // one printable line
  std::vector<std::uint32_t> also;  // further lines of the same file that say the same

  [[nodiscard]] std::string text() const;  // "nginx.conf:12: message"
};

struct Import {
  std::string file;    // as it was given
  std::string format;  // "nginx"
  std::vector<Pool> pools;
  std::vector<Listener> listeners;
  std::optional<std::uint32_t> workers;
  std::vector<Note> notes;  // by file and line
};

}  // namespace clockwise::importer
