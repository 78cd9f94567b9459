#include "config/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace clockwise::config {
namespace {

constexpr std::size_t kMaxShown = 1'000;  // a file of garbage must not fill the log

}  // namespace

void Report::begin_file(const std::string& name) { files_.emplace(name, files_.size()); }

bool Report::is_full() const noexcept { return errors_.size() >= kMaxShown; }

bool Report::is_full_of_warnings() const noexcept { return warnings_.size() >= kMaxShown; }

void Report::error(Problem problem, FailureCode code) {
  if (code == FailureCode::invalid) invalid_ = true;
  if (!is_full()) errors_.push_back(std::move(problem));
}

void Report::warning(Problem problem) {
  if (!is_full_of_warnings()) warnings_.push_back(std::move(problem));
}

void Report::when_valid(std::function<void()> look) { looks_.push_back(std::move(look)); }

void Report::sort(std::vector<Problem>& problems) const {
  const auto rank = [this](const Problem& problem) {
    const auto file = files_.find(problem.position.file);
    return std::tuple(file == files_.end() ? files_.size() : file->second, problem.position.line,
                      problem.position.column, std::string_view(problem.message));
  };
  std::sort(problems.begin(), problems.end(),
            [&](const Problem& a, const Problem& b) { return rank(a) < rank(b); });
  // Two pools that read one file find its problems twice.
  const auto same = [&](const Problem& a, const Problem& b) { return rank(a) == rank(b); };
  problems.erase(std::unique(problems.begin(), problems.end(), same), problems.end());
}

Failure Report::take_failure() {
  sort(errors_);
  if (is_full()) {
    Problem rest;
    rest.position.file = errors_.back().position.file;
    rest.message = fmt::format("more than {} problems; the rest is not shown", kMaxShown);
    errors_.push_back(std::move(rest));
  }
  return {invalid_ ? FailureCode::invalid : FailureCode::unreadable, std::move(errors_)};
}

std::vector<Problem> Report::take_warnings() {
  for (const auto& look : looks_) look();
  looks_.clear();
  sort(warnings_);
  return std::move(warnings_);
}

}  // namespace clockwise::config
