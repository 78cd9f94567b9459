// How the admin API asks for a reload without knowing who performs it.
#pragma once

#include <functional>

#include "upstream/directory.h"

namespace clockwise::upstream {

// Runs on the control thread; `done` is called there exactly once, after workers took over the new
// routing (or nothing changed). Thread-safe to call.
using ReloadRequest = std::function<void(Trigger trigger, bool force,
                                         std::function<void(const ReloadOutcome&)> done)>;

}  // namespace clockwise::upstream
