// What of a new configuration can be applied to the running process, and what waits for a restart.
//
// Pure.
#pragma once

#include <vector>

#include "config/model.h"
#include "upstream/directory.h"

namespace clockwise::runtime {

struct Effective {
  config::Config config;                          // what shall run now
  std::vector<upstream::NotApplied> not_applied;  // where it differs from what was asked, and why
};

// Takes over from `running` what cannot change while the process lives: the admin address, the
// user, the state folder, and more workers than `max_workers`.
[[nodiscard]] Effective keep_until_restart(const config::Config& running, config::Config asked,
                                           std::size_t max_workers);

// Whether two configurations mean the same: the order of listeners and servers is left out.
[[nodiscard]] bool same_meaning(const config::Config& a, const config::Config& b);

// Whether two pools have the same ring settings and servers, from the same source.
[[nodiscard]] bool same_placement(const config::Pool& a, const config::Pool& b);

}  // namespace clockwise::runtime
