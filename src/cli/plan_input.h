// The two lists that `plan` compares: two full configurations, or two bare lists of servers.
#pragma once

#include <optional>
#include <vector>

#include "cli/cli.h"
#include "config/model.h"

namespace clockwise::cli {

struct PlanInput {
  std::vector<config::Pool> before, after;  // a bare list is one pool
};

// Bare lists take their ring and guards from the pool of `-c FILE`, else from the defaults (the
// pool is then called as --pool says, or "default"). Nothing after a failure, which is on stderr
// then: the problems of both files, so that one run shows them all.
[[nodiscard]] std::optional<PlanInput> read_plan_input(const PlanOptions& options);

}  // namespace clockwise::cli
