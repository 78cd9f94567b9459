// `clockwise plan`: what a change of the server list would move, before it is applied.
#include "upstream/plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <set>

#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/key_file.h"
#include "cli/plan_input.h"
#include "cli/plan_text.h"
#include "cli/streams.h"
#include "upstream/report_text.h"

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
    if (options_.rate && !options_.hit_ratio)
      fmt::print(stderr,
                 "note: --rate tells what the change costs only with --hit-ratio, the share of the "
                 "requests that the caches answer\n");
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
    // Both rings at once: building them is most of the work.
    auto after = std::async(std::launch::async, [&] { return build(pool.after); });
    auto ring_before = build(pool.before), ring_after = after.get();
    for (const auto* ring : {&ring_before, &ring_after})
      if (!*ring) return ring->error();
    pool.ring_before = *std::move(ring_before);
    pool.ring_after = *std::move(ring_after);
    pool.report = upstream::plan(pool.before_side(), pool.after_side());
    if (options_.hit_ratio || options_.rate)
      pool.report.cost = upstream::cost_of(pool.report, options_.hit_ratio, options_.rate);
    pools_.push_back(std::move(pool));
    return {};
  }

  // No ring for a pool that this side lacks.
  static Result<std::shared_ptr<const ring::Ring>> build(const config::Pool* pool) {
    if (pool == nullptr) return std::shared_ptr<const ring::Ring>();
    return upstream::build_ring(*pool);
  }

  Result<void> count_keys() {
    std::vector<CountedChange> changes;
    for (const Comparison& pool : pools_)
      changes.push_back({pool.before_side(), pool.after_side()});
    if (const Result<void> done = cli::count_keys(options_.keys, changes); !done) return done;
    for (std::size_t i = 0; i < pools_.size(); ++i)
      pools_[i].report.keys = std::move(changes[i].keys);
    return {};
  }

  Result<void> print() const {
    Output output;
    if (options_.json) {
      Result<void> done;
      output.append("{\"pools\": [");
      for (const Comparison& pool : pools_) {
        if (&pool != &pools_.front()) output.append(", ");
        upstream::write_json(pool.report, [&](std::string_view text) {
          output.append(text);
          if (done) done = output.flush();
        });
      }
      output.append("]}\n");
      return done ? output.flush() : done;
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
