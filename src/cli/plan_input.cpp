#include "cli/plan_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "cli/configuration.h"

namespace clockwise::cli {
namespace {

using Pools = std::vector<config::Pool>;

constexpr std::string_view kCommand = "plan";
constexpr std::string_view kInput = "-";

// The real files, and standard input as "-", whose text can be had but once: it is taken at the
// first call.
config::FileReader files_and_input() {
  return [input = std::make_shared<std::optional<std::string>>()](const std::string& path) {
    if (path != kInput) return config::real_files()(path);
    if (!*input)
      input->emplace(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
    return std::variant<std::string, std::string>(std::in_place_index<0>, **input);
  };
}

std::optional<std::string> read_text(const std::string& path, const config::FileReader& read) {
  auto text = read(path);
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
  complain(kCommand, pool.error().message);
  return std::nullopt;
}

std::optional<Pools> full_configuration(const std::string& path, const config::FileReader& read) {
  std::optional<config::Loaded> loaded = load_or_report(path, read);
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
  const auto inputs = {options.before, options.after, options.keys};
  if (std::ranges::count(inputs, kInput) > 1) {
    complain(kCommand, "only one of OLD, NEW and --keys can be standard input");
    return std::nullopt;
  }
  const config::FileReader read = files_and_input();
  const std::optional<std::string> before = read_text(options.before, read);
  const std::optional<std::string> after = read_text(options.after, read);
  if (!before || !after) return std::nullopt;
  const bool full = config::is_full_configuration(*before);
  if (full != config::is_full_configuration(*after)) {
    complain(kCommand, fmt::format("{} is a full configuration and {} a bare list of servers: give "
                                   "two of one kind",
                                   full ? options.before : options.after,
                                   full ? options.after : options.before));
    return std::nullopt;
  }
  if (full)
    return both(full_configuration(options.before, read), full_configuration(options.after, read));
  const std::optional<config::Pool> pool = surrounding_pool(options);
  if (!pool) return std::nullopt;
  return both(bare_list(options.before, *before, *pool), bare_list(options.after, *after, *pool));
}

}  // namespace clockwise::cli
