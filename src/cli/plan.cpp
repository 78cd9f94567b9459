// `clockwise plan`: what a change of the server list would move, before it is applied.
#include "upstream/plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/key_log.h"
#include "cli/plan_input.h"
#include "cli/plan_text.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "upstream/json.h"
#include "upstream/key_count.h"

namespace clockwise::cli {
namespace {

using upstream::Report;
using upstream::Side;

constexpr std::string_view kCommand = "plan";

// One pool on both sides.
struct Comparison {
  const config::Pool* before = nullptr;
  const config::Pool* after = nullptr;
  std::shared_ptr<const ring::Ring> ring_before, ring_after;
  Report report;

  Side before_side() const { return {before, ring_before.get()}; }
  Side after_side() const { return {after, ring_after.get()}; }
};

class Planner {
 public:
  Planner(const PlanOptions& options, PlanInput input)
      : options_(options), input_(std::move(input)) {}

  int run() {
    if (const Result<void> done = compare(); !done) return complain(kCommand, done.error().message);
    if (!options_.keys.empty())
      if (const Result<void> done = count_keys(); !done)
        return complain(kCommand, options_.keys + ": " + done.error().message);
    if (const Result<void> done = print(); !done) return complain(kCommand, done.error().message);
    return above_limit() ? kRefused : kOk;
  }

 private:
  static const config::Pool* find(const std::vector<config::Pool>& pools, const std::string& name) {
    for (const config::Pool& pool : pools)
      if (pool.name == name) return &pool;
    return nullptr;
  }

  Result<void> compare() {
    std::set<std::string> names;
    for (const auto* pools : {&input_.before, &input_.after})
      for (const config::Pool& pool : *pools)
        if (options_.pool.empty() || pool.name == options_.pool) names.insert(pool.name);
    if (names.empty()) return fail(fmt::format("neither file has a pool \"{}\"", options_.pool));
    for (const std::string& name : names)
      if (const Result<void> done = compare_pool(name); !done) return done;
    return {};
  }

  Result<void> compare_pool(const std::string& name) {
    Comparison pool;
    pool.before = find(input_.before, name);
    pool.after = find(input_.after, name);
    for (auto [side, ring] :
         {std::pair(pool.before, &pool.ring_before), std::pair(pool.after, &pool.ring_after)}) {
      if (side == nullptr) continue;
      auto built = upstream::build_ring(*side);
      if (!built) return built.error();
      *ring = *std::move(built);
    }
    pool.report = upstream::plan(pool.before_side(), pool.after_side());
    pools_.push_back(std::move(pool));
    return {};
  }

  Result<void> count_keys() {
    const int file = ::open(options_.keys.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail(std::strerror(errno));
    const Result<void> done = count_keys_of(file);
    ::close(file);
    return done;
  }

  Result<void> count_keys_of(int file) {
    struct stat status{};
    const bool sized = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    Progress progress("counting keys", sized ? static_cast<std::uint64_t>(status.st_size) : 0);
    std::vector<upstream::KeyCounter> counters;
    for (const Comparison& pool : pools_)
      counters.emplace_back(pool.before_side(), pool.after_side());
    std::optional<KeyFormat> format;
    std::uint64_t without_key = 0;
    const auto line = [&](std::string_view text) -> Result<void> {
      if (text.empty()) return {};
      if (!format) format = detect_key_format(text);
      const std::optional<std::string> key = key_of_line(text, *format);
      if (!key) ++without_key;
      if (key)
        for (upstream::KeyCounter& counter : counters) counter.add(*key);
      return {};
    };
    const auto done = read_lines(file, line, [&](std::uint64_t bytes) -> Result<void> {
      progress.update(bytes);
      return {};
    });
    if (!done) return done;
    if (without_key > 0)
      fmt::print(stderr, "{}: {} lines without a request target left out\n", options_.keys,
                 without_key);
    for (std::size_t i = 0; i < pools_.size(); ++i) pools_[i].report.keys = counters[i].result();
    warn_of_other_keys(format.value_or(KeyFormat::plain));
    return {};
  }

  // A log has no more of a request than its target; a pool may hash something else.
  void warn_of_other_keys(KeyFormat format) const {
    if (format == KeyFormat::plain) return;
    for (const Comparison& pool : pools_) {
      const std::string& key = (pool.after ? pool.after : pool.before)->ring.key;
      if (key != "{uri}")
        fmt::print(stderr, "note: pool {} hashes {}, but the keys of a log are request targets\n",
                   pool.report.pool, key);
    }
  }

  Result<void> print() const {
    Output output;
    if (options_.json) {
      boost::json::array reports;
      for (const Comparison& pool : pools_) reports.push_back(upstream::to_json(pool.report));
      output.append(upstream::to_text(boost::json::object{{"pools", std::move(reports)}}));
      output.append("\n");
      return output.flush();
    }
    const bool colour = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    for (const Comparison& pool : pools_) {
      if (&pool != &pools_.front()) output.append("\n");
      output.append(plan_text(pool.report, colour));
    }
    return output.flush();
  }

  bool above_limit() const {
    bool above = false;
    for (const Comparison& pool : pools_) {
      if (!options_.max_remap || !(pool.report.moved_ratio > *options_.max_remap)) continue;
      above = true;
      complain(
          kCommand,
          fmt::format("pool {} would move {:.2f} % of its keys, --max-remap is {:g} %",
                      pool.report.pool, pool.report.moved_ratio * 100, *options_.max_remap * 100));
    }
    return above;
  }

  const PlanOptions& options_;
  const PlanInput input_;
  std::vector<Comparison> pools_;
};

}  // namespace

int plan(const PlanOptions& options) {
  std::optional<PlanInput> input = read_plan_input(options);
  return input ? Planner(options, *std::move(input)).run() : kError;
}

}  // namespace clockwise::cli
