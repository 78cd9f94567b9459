// The command line: one function per command, one file each (section 1 of docs/cli.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ring/scheme.h"

namespace clockwise::cli {

// Exit codes that scripts may rely on.
inline constexpr int kOk = 0;
inline constexpr int kError = 1;
inline constexpr int kUsage = 2;    // unknown flag or command
inline constexpr int kRefused = 3;  // a limit or guard said no; `fleet`: the rings differ

// Parses the arguments, runs the command, returns the exit code.
int run(int argc, char** argv);

struct ServeOptions {
  std::string config;                    // -c FILE, or:
  std::string listen;                    // --listen ADDR
  std::vector<std::string> to;           // --to ADDR[,ADDR…]
  bool print_config = false;             // print the YAML that --listen/--to stand for
  std::optional<std::uint32_t> workers;  // --workers N, over the file
  std::string log_level = "info";        // error, warn, info, debug
};
int serve(const ServeOptions& options);

int check(const std::string& config);
int init(const std::string& file);

struct LookupOptions {
  std::string config;
  std::string pool;  // empty: the only one, else an error that names them
  bool json = false;
  bool hashes = false;  // keys are ring positions in decimal
  std::uint32_t replicas = 1;
  std::vector<std::string> keys;  // "-": from stdin, one a line
};
int lookup(const LookupOptions& options);

struct ExplainOptions {
  std::string config;
  std::string admin;  // the proxy that answers instead of the configuration
  std::string token;
  std::string pool;
  bool json = false;
  std::vector<std::string> keys;  // "-": from stdin, one a line
};
int explain(const ExplainOptions& options);

struct PlanOptions {
  std::string before, after;  // one may be "-": standard input
  std::string config;         // -c FILE: where bare upstream files take their ring from
  std::string pool;
  std::string keys;  // file of keys or access log; "-": standard input
  bool json = false;
  std::optional<double> max_remap;  // 0 to 1
  std::optional<double> hit_ratio;  // 0 to 1, of the caches behind the pool
  std::optional<double> rate;       // requests per second
};
int plan(const PlanOptions& options);

struct ReloadOptions {
  std::string admin = "http://127.0.0.1:9901";
  std::string token;
  bool force = false;
  bool json = false;
};
int reload(const ReloadOptions& options);

struct SimulateOptions {
  std::string preset;  // "list": name them; empty: a free experiment, from what follows
  std::vector<std::string> schemes{"modulo", "clockwise"};
  std::uint64_t keys = 100'000;
  std::string key_format = "key:{}";
  std::string nodes = "4", add, remove;  // see simulate::ChangeText
  std::vector<std::uint32_t> points{1, 10, 50, 100, 150, 200, 500};
  ring::Scheme scheme;                  // the values of:
  std::vector<std::string> parameters;  // which of them were given, as the configuration names them
  double balance = 1.25;                // of `bounded`
  bool json = false;
  std::string svg;  // file to draw into
};
int simulate(const SimulateOptions& options);

struct ImportOptions {
  std::string file;
  std::string from;         // a name of importer::format_names(); empty: guessed
  std::uint64_t prove = 0;  // keys to compare; 0: none
};
int import_pools(const ImportOptions& options);

struct FleetOptions {
  std::vector<std::string> urls;  // admin addresses
  std::string token;
  std::chrono::milliseconds timeout{5000};  // for each proxy
  bool json = false;
};
int fleet(const FleetOptions& options);

int demo(bool once);

}  // namespace clockwise::cli
