#include "simulate/experiment.h"

#include <algorithm>
#include <cmath>

namespace clockwise::simulate {
namespace {

constexpr std::uint64_t kProgressEvery = 4096;

// Counts one key after the other.
class Counter {
 public:
  explicit Counter(const Change& change)
      : previous_(match(change.after, change.before)), counts_(change.after.size(), 0) {
    const auto next = match(change.before, change.after);
    for (std::size_t i = 0; i < change.before.size(); ++i)
      stays_.push_back(next[i] && change.after[*next[i]] == change.before[i]);
  }

  void add(ring::ServerIndex before, ring::ServerIndex after) {
    ++counts_[after];
    const auto was = previous_[after];  // where the owner after stands in the list before
    if (was == before) return;
    ++moved_;
    if (was && stays_[*was] && stays_[before]) ++needless_;
  }

  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
  [[nodiscard]] std::uint64_t needless() const noexcept { return needless_; }
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }

 private:
  std::vector<std::optional<ring::ServerIndex>> previous_;
  std::vector<bool> stays_;  // by index before: the list after has it with the same weight
  std::vector<std::uint64_t> counts_;
  std::uint64_t moved_ = 0, needless_ = 0;
};

// The load of each server that may own keys over what its weight entitles it to.
std::vector<double> loads(const Nodes& nodes, const std::vector<std::uint64_t>& counts,
                          std::uint64_t keys) {
  const double per_weight = static_cast<double>(keys) / total_weight(nodes);
  std::vector<double> loads;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].weight > 0)
      loads.push_back(static_cast<double>(counts[i]) / (nodes[i].weight * per_weight));
  return loads;
}

Row describe(const Trial& trial, const Places& places, const Counter& counter, std::uint64_t keys) {
  const Change& change = trial.change;
  Row row;
  row.scheme = name(trial.contestant);
  row.points = places.points;
  row.servers_before = change.before.size();
  row.servers_after = change.after.size();
  row.keys = keys;
  row.moved = counter.moved();
  row.needless = counter.needless();
  row.minimum_ratio = minimum_ratio(change);
  row.loads = loads(change.after, counter.counts(), keys);
  for (std::size_t i = 0; i < change.after.size(); ++i)
    row.counts.emplace_back(change.after[i].name, counter.counts()[i]);
  return row;
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double Row::moved_ratio() const noexcept { return ratio(moved, keys); }

double Row::needless_ratio() const noexcept { return ratio(needless, keys); }

double Row::max_over_mean() const noexcept { return std::ranges::max(loads); }

std::optional<double> Row::max_over_min() const noexcept {
  const auto [least, most] = std::ranges::minmax(loads);
  return least > 0 ? std::optional(most / least) : std::nullopt;
}

double Row::deviation_ratio() const noexcept {
  double squares = 0;
  for (const double load : loads) squares += (load - 1) * (load - 1);
  return std::sqrt(squares / static_cast<double>(loads.size()));
}

double expected_deviation(std::uint64_t points, std::size_t servers) noexcept {
  const auto n = static_cast<double>(servers);
  return std::sqrt((n - 1) / (n * static_cast<double>(points) + 1));
}

std::vector<Trial> sweep(const std::vector<Contestant>& contestants,
                         const std::vector<std::uint32_t>& points, const Change& change) {
  std::vector<Trial> trials;
  for (const Contestant& contestant : contestants) {
    if (!takes_points(contestant) || points.empty()) {
      trials.push_back({contestant, change});
      continue;
    }
    for (const std::uint32_t count : points) {
      trials.push_back({contestant, change});
      trials.back().contestant.scheme.points = count;
    }
  }
  return trials;
}

Result<Row> run(const Trial& trial, const KeySeries& keys,
                const std::function<void(std::uint64_t)>& progress) {
  const Result<Places> where = places(trial.contestant, trial.change, keys.count());
  if (!where) return where.error();
  Counter counter(trial.change);
  std::string buffer;
  for (std::uint64_t i = 0; i < keys.count(); ++i) {
    if (i % kProgressEvery == 0) progress(i);
    const std::string_view key = keys.write(i, buffer);
    counter.add(where->before(key), where->after(key));
  }
  return describe(trial, *where, counter, keys.count());
}

}  // namespace clockwise::simulate
