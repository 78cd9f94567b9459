// `clockwise simulate`: the experiment of the consistent-hashing literature on the product's own
// rings, or one of its published runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>

#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "simulate/experiment.h"
#include "simulate/picture.h"
#include "simulate/preset.h"
#include "simulate/summary.h"
#include "upstream/json.h"

namespace clockwise::cli {
namespace {

using simulate::Contestant;
using simulate::Row;

constexpr std::string_view kCommand = "simulate";

// What a run comes to: rows, and how they are put into words.
struct Outcome {
  std::vector<Row> rows;
  std::string text;
};

Result<Contestant> find_contestant(const std::string& name) {
  if (const auto found = simulate::contestant(name)) return *found;
  const std::vector<std::string_view> known = simulate::names();
  const std::string suggestion = did_you_mean(name, known);
  return fail(fmt::format(
      "there is no scheme \"{}\"{}", name,
      suggestion.empty() ? fmt::format("; there is: {}", fmt::join(known, ", ")) : suggestion));
}

bool is_ring(const Contestant& contestant) { return contestant.kind == simulate::Kind::ring; }

bool takes(const ring::SchemeFacts& facts, std::string_view parameter) {
  return std::ranges::find(facts.parameters, parameter) != facts.parameters.end();
}

void copy_parameter(const ring::Scheme& from, std::string_view parameter, ring::Scheme& to) {
  if (parameter == "hash" || parameter == "key_hash") to.hash = from.hash;
  if (parameter == "label") to.label = from.label;
  if (parameter == "bits") to.bits = from.bits;
  if (parameter == "table") to.table = from.table;
  if (parameter == "form") to.form = from.form;
  if (parameter == "distribution") to.distribution = from.distribution;
  if (parameter == "avalanche") to.avalanche = from.avalanche;
  if (parameter == "min_size") to.min_size = from.min_size;
  if (parameter == "max_size") to.max_size = from.max_size;
}

std::string no_taker(std::string_view parameter) {
  std::vector<std::string_view> takers;
  for (const ring::SchemeFacts& facts : ring::schemes())
    if (takes(facts, parameter)) takers.push_back(facts.name);
  return fmt::format("none of the schemes here takes the parameter {}; {} would", parameter,
                     fmt::join(takers, ", "));
}

// Gives each parameter of the command line to the schemes that take it.
Result<void> set_parameters(const SimulateOptions& options, std::vector<Contestant>& contestants) {
  for (const std::string& parameter : options.parameters) {
    bool taken = false;
    for (Contestant& contestant : contestants) {
      const auto& facts = ring::facts(contestant.scheme.placement);
      const bool key_hash = parameter == "hash" && takes(facts, "key_hash");
      if (!is_ring(contestant) || !(takes(facts, parameter) || key_hash)) continue;
      taken = true;
      copy_parameter(options.scheme, parameter, contestant.scheme);
    }
    if (!taken) return fail(no_taker(parameter));
  }
  return {};
}

Result<std::vector<Contestant>> contestants_of(const SimulateOptions& options) {
  std::vector<Contestant> contestants;
  for (const std::string& name : options.schemes) {
    Result<Contestant> found = find_contestant(name);
    if (!found) return found.error();
    found->balance = options.balance;
    contestants.push_back(*std::move(found));
  }
  if (const auto done = set_parameters(options, contestants); !done) return done.error();
  return contestants;
}

Result<std::vector<Row>> run_all(const std::vector<simulate::Trial>& trials,
                                 const simulate::KeySeries& keys) {
  Progress progress("placing keys", trials.size() * keys.count());
  std::vector<Row> rows;
  for (const simulate::Trial& trial : trials) {
    const std::uint64_t before = rows.size() * keys.count();
    Result<Row> row =
        simulate::run(trial, keys, [&](std::uint64_t done) { progress.update(before + done); });
    if (!row) return fail(fmt::format("{}: {}", name(trial.contestant), row.error().message));
    rows.push_back(*std::move(row));
  }
  return rows;
}

Result<Outcome> run_free(const SimulateOptions& options) {
  const auto change = simulate::read_change({options.nodes, options.add, options.remove});
  if (!change) return change.error();
  const auto keys = simulate::KeySeries::parse(options.key_format, options.keys);
  if (!keys) return keys.error();
  const auto contestants = contestants_of(options);
  if (!contestants) return contestants.error();
  Result<std::vector<Row>> rows =
      run_all(simulate::sweep(*contestants, options.points, *change), *keys);
  if (!rows) return rows.error();
  std::string text = simulate::headline(*change, *keys) + simulate::summary(*rows);
  return Outcome{*std::move(rows), std::move(text)};
}

Result<Outcome> run_preset(const std::string& name) {
  std::vector<std::string_view> names;
  for (const simulate::Preset& preset : simulate::presets()) {
    names.push_back(preset.name);
    if (preset.name != name) continue;
    const auto keys = simulate::KeySeries::parse(preset.key_format, simulate::kPresetKeys);
    if (!keys) return keys.error();
    Result<std::vector<Row>> rows = run_all(preset.trials(), *keys);
    if (!rows) return rows.error();
    std::string text = fmt::format("{}: {}\n\n{}", name, preset.about, preset.text(*rows));
    return Outcome{*std::move(rows), std::move(text)};
  }
  return fail(fmt::format("there is no preset \"{}\"{}; there is: {}", name,
                          did_you_mean(name, names), fmt::join(names, ", ")));
}

boost::json::value to_json(const Row& row) {
  const auto or_null = [](const auto& value) -> boost::json::value {
    return value ? boost::json::value(*value) : boost::json::value(nullptr);
  };
  boost::json::object counts;
  for (const auto& [name, count] : row.counts) counts[name] = count;
  return boost::json::object{{"scheme", row.scheme},
                             {"points", or_null(row.points)},
                             {"servers_before", row.servers_before},
                             {"servers_after", row.servers_after},
                             {"keys", row.keys},
                             {"moved", row.moved},
                             {"moved_ratio", row.moved_ratio()},
                             {"minimum_ratio", row.minimum_ratio},
                             {"needless_ratio", row.needless_ratio()},
                             {"max_over_mean", row.max_over_mean()},
                             {"max_over_min", or_null(row.max_over_min())},
                             {"deviation_ratio", row.deviation_ratio()},
                             {"counts", std::move(counts)}};
}

std::string json_text(const std::vector<Row>& rows) {
  boost::json::array all;
  for (const Row& row : rows) all.push_back(to_json(row));
  return upstream::to_text(boost::json::object{{"rows", std::move(all)}}) + "\n";
}

Result<void> write_picture(const std::string& file, const std::vector<Row>& rows) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << simulate::picture(rows);
  out.close();
  if (!out) return fail(fmt::format("{}: cannot be written", file));
  return {};
}

int list_presets(bool json) {
  boost::json::array names;
  for (const simulate::Preset& preset : simulate::presets()) {
    names.push_back(boost::json::object{{"name", preset.name}, {"about", preset.about}});
    if (!json) fmt::print("{:<14} {}\n", preset.name, preset.about);
  }
  if (json) fmt::print("{}\n", upstream::to_text(boost::json::object{{"presets", names}}));
  return kOk;
}

}  // namespace

int simulate(const SimulateOptions& options) {
  if (options.preset == "list") return list_presets(options.json);
  const Result<Outcome> outcome =
      options.preset.empty() ? run_free(options) : run_preset(options.preset);
  if (!outcome) return complain(kCommand, outcome.error().message);
  if (!options.svg.empty())
    if (const auto done = write_picture(options.svg, outcome->rows); !done)
      return complain(kCommand, done.error().message);
  Output output;
  output.append(options.json ? json_text(outcome->rows) : outcome->text);
  const Result<void> done = output.flush();
  return done ? kOk : complain(kCommand, done.error().message);
}

}  // namespace clockwise::cli
