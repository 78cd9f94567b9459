#include "cli/plan_input.h"

#include <fmt/format.h>

#include "cli/configuration.h"

namespace clockwise::cli {
namespace {

using Pools = std::vector<config::Pool>;

std::optional<std::string> read_text(const std::string& path) {
  auto text = config::real_files()(path);
  if (text.index() == 0) return std::get<0>(std::move(text));
  config::Problem problem;
  problem.position.file = path;
  problem.message = "cannot be read: " + std::get<1>(text);
  report(config::Failure{config::FailureCode::unreadable, {std::move(problem)}});
  return std::nullopt;
}

std::optional<config::Pool> surrounding_pool(const PlanOptions& options) {
  if (options.config.empty()) {
    config::Pool pool;
    pool.name = options.pool.empty() ? "default" : options.pool;
    return pool;
  }
  const std::optional<config::Loaded> loaded = load_or_report(options.config);
  if (!loaded) return std::nullopt;
  const Result<const config::Pool*> pool = choose_pool(loaded->config, options.pool);
  if (pool) return **pool;
  complain("plan", pool.error().message);
  return std::nullopt;
}

std::optional<Pools> full_configuration(const std::string& path) {
  std::optional<config::Loaded> loaded = load_or_report(path);
  if (!loaded) return std::nullopt;
  return std::move(loaded->config.pools);
}

std::optional<Pools> bare_list(const std::string& path, const std::string& text,
                               config::Pool pool) {
  auto servers = config::load_servers(path, text, pool, config::real_environment());
  if (const auto* failure = std::get_if<config::Failure>(&servers)) {
    report(*failure);
    return std::nullopt;
  }
  pool.servers = std::get<0>(std::move(servers));
  return Pools{std::move(pool)};
}

std::optional<PlanInput> both(std::optional<Pools> before, std::optional<Pools> after) {
  if (!before || !after) return std::nullopt;
  return PlanInput{*std::move(before), *std::move(after)};
}

}  // namespace

std::optional<PlanInput> read_plan_input(const PlanOptions& options) {
  const std::optional<std::string> before = read_text(options.before);
  const std::optional<std::string> after = read_text(options.after);
  if (!before || !after) return std::nullopt;
  const bool full = config::is_full_configuration(*before);
  if (full != config::is_full_configuration(*after)) {
    complain("plan", fmt::format("{} is a full configuration and {} a bare list of servers: give "
                                 "two of one kind",
                                 full ? options.before : options.after,
                                 full ? options.after : options.before));
    return std::nullopt;
  }
  if (full) return both(full_configuration(options.before), full_configuration(options.after));
  const std::optional<config::Pool> pool = surrounding_pool(options);
  if (!pool) return std::nullopt;
  return both(bare_list(options.before, *before, *pool), bare_list(options.after, *after, *pool));
}

}  // namespace clockwise::cli
