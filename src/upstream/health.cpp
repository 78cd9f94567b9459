#include "upstream/health.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace clockwise::upstream {

namespace {

constexpr double kStray = 0.1;  // of an ejection

double share_of_successes(const Tally& tally) {
  return static_cast<double>(tally.good) / static_cast<double>(tally.total());
}

}  // namespace

Standing ServerHealth::standing() const noexcept {
  if (away_ || (has_result_ && !passing_)) return Standing::unusable;
  if (ejection_ == Ejection::trial) return Standing::on_trial;
  return ejection_ == Ejection::out ? Standing::unusable : Standing::usable;
}

void ServerHealth::checked(bool passed, const config::Health& rules) noexcept {
  if (!std::exchange(has_result_, true)) {
    passing_ = passed;
    against_ = 0;
    return;
  }
  against_ = passed == passing_ ? 0 : against_ + 1;
  if (against_ < (passed ? rules.rise : rules.fall)) return;
  passing_ = passed;
  against_ = 0;
}

void ServerHealth::forget_checks() noexcept {
  has_result_ = false;
  passing_ = true;
  against_ = 0;
}

void ServerHealth::eject(Time now, const config::Outlier& rules, double chance) noexcept {
  // In floating point: the product of two numbers from a file may be longer than a clock can tell.
  const double most = static_cast<double>(rules.max_eject.count());
  const double step = static_cast<double>(rules.eject.count());
  // More would make no ejection longer, but take as long as the outage to forget.
  if (step * in_a_row_ < most) ++in_a_row_;
  const double length = step * in_a_row_;
  const double strayed = std::min(most, length * (1 + kStray * chance));
  length_ = std::chrono::milliseconds(static_cast<std::int64_t>(strayed));
  ejection_ = Ejection::out;
  until_ = now + length_;
}

bool ServerHealth::pass_time(Time now) noexcept {
  if (ejection_ == Ejection::out && now >= until_) {
    ejection_ = Ejection::trial;
    return true;
  }
  if (ejection_ != Ejection::none || in_a_row_ == 0 || now < until_) return false;
  --in_a_row_;
  until_ = now + length_;
  return true;
}

void ServerHealth::tried(bool answered, Time now, const config::Outlier& rules,
                         double chance) noexcept {
  if (ejection_ != Ejection::trial) return;
  if (!answered) return eject(now, rules, chance);
  ejection_ = Ejection::none;
  until_ = now + length_;
}

void ServerHealth::forget_ejections() noexcept {
  ejection_ = Ejection::none;
  in_a_row_ = 0;
}

std::size_t most_ejected(std::size_t servers, double max_ejected) noexcept {
  const double most = std::floor(static_cast<double>(servers) * max_ejected + 1e-9);
  return std::max<std::size_t>(1, static_cast<std::size_t>(most));
}

bool panics(std::size_t usable, std::size_t servers, double panic) noexcept {
  if (servers == 0 || usable == servers) return false;
  return usable == 0 || static_cast<double>(usable) < panic * static_cast<double>(servers) - 1e-9;
}

std::vector<std::size_t> stragglers(std::span<const Tally> servers, const config::Outlier& rules) {
  std::vector<std::size_t> found;
  if (rules.success_gap <= 0) return found;
  Tally all;
  for (const Tally& one : servers) {
    all.good += one.good;
    all.bad += one.bad;
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Tally rest{all.good - servers[i].good, all.bad - servers[i].bad};
    if (servers[i].total() < rules.min_requests || rest.total() < rules.min_requests) continue;
    const double gap = share_of_successes(rest) - share_of_successes(servers[i]);
    if (gap > rules.success_gap) found.push_back(i);
  }
  std::ranges::sort(found, {}, [&](std::size_t i) { return share_of_successes(servers[i]); });
  return found;
}

}  // namespace clockwise::upstream
