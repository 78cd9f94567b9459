// `clockwise check -c FILE`: everything `serve` would refuse, all at once.
#include <fmt/format.h>

#include <cstdio>

#include "cli/cli.h"
#include "config/load.h"
#include "runtime/preflight.h"

namespace clockwise::cli {
namespace {

void print(const char* kind, const std::vector<config::Problem>& problems) {
  for (const config::Problem& problem : problems)
    fmt::print(stderr, "{}{}\n", kind, problem.text());
}

std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

int refuse(const std::string& file, const std::vector<config::Problem>& problems) {
  print("", problems);
  fmt::print(stderr, "{} is not valid: {}\n", file, counted(problems.size(), "problem"));
  return kError;
}

int accept(const std::string& file, const config::Loaded& loaded) {
  print("warning: ", loaded.warnings);
  std::size_t servers = 0;
  for (const config::Pool& pool : loaded.config.pools) servers += pool.servers.size();
  fmt::print("{} is valid: {}, {}, {}{}\n", file,
             counted(loaded.config.listeners.size(), "listener"),
             counted(loaded.config.pools.size(), "pool"), counted(servers, "server"),
             loaded.warnings.empty() ? "" : "; " + counted(loaded.warnings.size(), "warning"));
  return kOk;
}

}  // namespace

int check(const std::string& config) {
  const config::LoadResult result =
      config::load(config, config::real_files(), config::real_environment());
  if (const auto* failure = std::get_if<config::Failure>(&result))
    return refuse(config, failure->problems);
  const auto& loaded = std::get<config::Loaded>(result);
  runtime::Resolver resolver;
  const auto lookup = [&](const std::set<std::string>& names, std::chrono::milliseconds patience) {
    return resolver.lookup(names, patience);
  };
  const std::vector<config::Problem> problems =
      runtime::preflight(config, loaded.config, config::real_files(), lookup);
  if (problems.empty()) return accept(config, loaded);
  print("warning: ", loaded.warnings);
  return refuse(config, problems);
}

}  // namespace clockwise::cli
