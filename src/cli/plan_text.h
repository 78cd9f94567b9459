// The plan of one pool as a person reads it.
#pragma once

#include <string>

#include "upstream/plan.h"

namespace clockwise::cli {

// A sentence, a row for each server, who gives how much to whom, what that means for the user's
// keys and for the fetches, and what the guards of a reload would say. Of a large pool the servers
// and moves that matter most. `colour`: with the escape sequences of a terminal. Ends with a
// newline.
[[nodiscard]] std::string plan_text(const upstream::Report& report, bool colour);

}  // namespace clockwise::cli
