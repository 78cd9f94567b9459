// From YAML text to a validated Config, or to the whole list of what is wrong with it.
//
// Pure but for the reader and the environment that the caller passes in, so that tests need no
// file and `serve`, `check` and reload share one path. Strict where yaml-cpp is lenient: see the
// table in docs/configuration.md. May take long for large lists: never call it on an event loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/model.h"

namespace clockwise::config {

// 1-based; columns count characters. line 0: the problem is the file as a whole.
struct Position {
  std::string file;  // as it was given, never made absolute
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Problem {
  Position position;
  std::string message;  // "pools.pages.servers[2].weight: "heavy" is not a number, 0 to 10000"
  std::string source;   // the source line with the place marked below it; empty without a line

  // `FILE:LINE:COLUMN: message` on the first line, then the marked source line.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string headline() const;  // the first line alone
};

enum class FailureCode { invalid, unreadable };

struct Failure {
  FailureCode code = FailureCode::invalid;
  std::vector<Problem> problems;  // never empty, in the order of file and line
};

// The text of a file, or why it cannot be read ("no such file", "is a directory", …).
using FileReader =
    std::function<std::variant<std::string, std::string /*reason*/>(const std::string&)>;
using Environment = std::function<std::optional<std::string>(std::string_view)>;

struct Loaded {
  Config config;
  std::string digest;              // 12 hex digits of SHA-256 over the main and the upstream files
  std::vector<std::string> files;  // paths that were read: the main file first
  std::vector<Problem> warnings;   // valid, but hardly meant
};

using LoadResult = std::variant<Loaded, Failure>;

// Warnings have figures that take a while for large pools: some need the real ring.
enum class Warnings { wanted, unwanted };

// Reads `path` and the upstream files it names (relative to its folder).
[[nodiscard]] LoadResult load(const std::string& path, const FileReader& read,
                              const Environment& environment, Warnings warnings = Warnings::wanted);

// A bare upstream file (`servers:` and nothing else), for `plan OLD NEW` and POST …/plan.
// `name` stands for the file in messages; `pool` supplies ring and guards.
[[nodiscard]] std::variant<std::vector<Server>, Failure> load_servers(
    const std::string& name, const std::string& text, const Pool& pool,
    const Environment& environment);

// Does this text look like a full configuration (has `pools` or `listeners`) or a bare list?
[[nodiscard]] bool is_full_configuration(const std::string& text);

// The real file system and environment. A regular file of at most 64 MiB is read whole.
[[nodiscard]] FileReader real_files();
[[nodiscard]] Environment real_environment();

}  // namespace clockwise::config
