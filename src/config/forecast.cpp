#include "config/forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/field.h"
#include "ring/remap.h"

namespace clockwise::config {
namespace {

// Below this a share is shown as 0.0 %.
constexpr double kNothing = 0.0005;

// In a longer list one change that moves keys needlessly is enough: each costs another ring.
constexpr std::size_t kBothUpTo = 256;

// The name and label of a server that no list has: names have no blank.
constexpr const char* kNewcomer = "one more";

std::vector<std::string> names_of(std::span<const ring::Member> members) {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const ring::Member& member : members) names.push_back(member.name);
  return names;
}

}  // namespace

std::vector<std::size_t> Forecaster::on_ring() const {
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].live && members_[i].weight > 0) owners.push_back(i);
  return owners;
}

std::optional<Forecast> Forecaster::forecast(std::string change, const Members& after,
                                             const std::string& touched) const {
  const auto built = ring::build(scheme_, after);
  if (!built) return std::nullopt;
  const std::vector<std::string> old_names = names_of(members_), new_names = names_of(after);
  const ring::Account account = ring::compare({&now_, old_names}, {built.value().get(), new_names});
  Forecast out{std::move(change), 0, 0};
  for (const ring::Move& move : account.moves) {
    out.moved += move.ratio;
    if (old_names[move.from] != touched && new_names[move.to] != touched)
      out.needless += move.ratio;
  }
  return out;
}

std::optional<Forecast> Forecaster::with_one_more() const {
  std::vector<double> weights;
  for (const std::size_t i : on_ring()) weights.push_back(members_[i].weight);
  if (weights.empty()) return std::nullopt;
  const auto median = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2);
  std::nth_element(weights.begin(), median, weights.end());
  Members after(members_.begin(), members_.end());
  after.push_back({.label = kNewcomer, .weight = *median, .name = kNewcomer});
  return forecast(fmt::format("adding a server of weight {}", *median), after, kNewcomer);
}

std::optional<Forecast> Forecaster::without_middle() const {
  const std::vector<std::size_t> owners = on_ring();
  if (owners.size() < 2) return std::nullopt;
  const std::size_t middle = owners[(owners.size() - 1) / 2];
  Members after(members_.begin(), members_.end());
  after.erase(after.begin() + static_cast<std::ptrdiff_t>(middle));
  const std::string& name = members_[middle].name;
  return forecast(fmt::format("removing {}", quoted(name)), after, name);
}

std::optional<Forecast> Forecaster::with_double_weight() const {
  const std::vector<std::size_t> owners = on_ring();
  if (owners.empty()) return std::nullopt;
  const std::size_t middle = owners[(owners.size() - 1) / 2];
  Members after(members_.begin(), members_.end());
  after[middle].weight *= 2;
  const std::string& name = members_[middle].name;
  return forecast(fmt::format("giving {} twice its weight", quoted(name)), after, name);
}

std::optional<Forecast> Forecaster::worst() const {
  std::optional<Forecast> worst;
  const auto consider = [&](std::optional<Forecast> one) {
    if (one && one->needless > (worst ? worst->needless : kNothing)) worst = std::move(one);
  };
  consider(with_one_more());
  if (!worst || members_.size() <= kBothUpTo) consider(without_middle());
  if (!worst) consider(with_double_weight());
  return worst;
}

}  // namespace clockwise::config
