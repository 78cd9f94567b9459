// The command line: one function per command, one file each (section 1 of docs/cli.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace clockwise::cli {

// Exit codes that scripts may rely on.
inline constexpr int kOk = 0;
inline constexpr int kError = 1;
inline constexpr int kUsage = 2;    // unknown flag or command
inline constexpr int kRefused = 3;  // a limit or guard said no

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

struct PlanOptions {
  std::string before, after;
  std::string config;  // -c FILE: where bare upstream files take their ring from
  std::string pool;
  std::string keys;  // file of keys or access log
  bool json = false;
  std::optional<double> max_remap;  // 0 to 1
};
int plan(const PlanOptions& options);

struct ReloadOptions {
  std::string admin = "http://127.0.0.1:9901";
  std::string token;
  bool force = false;
  bool json = false;
};
int reload(const ReloadOptions& options);

int demo(bool once);

}  // namespace clockwise::cli
