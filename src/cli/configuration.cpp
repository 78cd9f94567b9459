#include "cli/configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cli.h"

namespace clockwise::cli {

int complain(std::string_view command, std::string_view message) {
  fmt::print(stderr, "clockwise {}: {}\n", command, message);
  return kError;
}

void report(const config::Failure& failure) {
  for (const config::Problem& problem : failure.problems)
    fmt::print(stderr, "{}\n", problem.text());
}

std::optional<config::Loaded> load_or_report(const std::string& path,
                                             const config::FileReader& read) {
  config::LoadResult result =
      config::load(path, read, config::real_environment(), config::Warnings::unwanted);
  if (auto* loaded = std::get_if<config::Loaded>(&result)) return std::move(*loaded);
  report(std::get<config::Failure>(result));
  return std::nullopt;
}

Result<const config::Pool*> choose_pool(const config::Config& config, const std::string& name) {
  if (name.empty() && config.pools.size() == 1) return &config.pools.front();
  std::vector<std::string> names;
  for (const config::Pool& pool : config.pools) names.push_back(pool.name);
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  if (name.empty())
    return fail(fmt::format("there are several pools, choose one with --pool: {}", known));
  if (const config::Pool* pool = config.pool(name)) return pool;
  return fail(fmt::format("there is no pool \"{}\"; there is: {}", name, known));
}

}  // namespace clockwise::cli
