// The rows of an experiment as a person reads them.
#pragma once

#include <span>
#include <string>

#include "simulate/experiment.h"

namespace clockwise::simulate {

// What the experiment did, in one line: keys, servers, what changed, the least that must move.
[[nodiscard]] std::string headline(const Change& change, const KeySeries& keys);

// A row for each trial with the theory beside the measured spread, the keys of each server when
// they are few enough, and what the columns mean. Ends with a newline.
[[nodiscard]] std::string summary(std::span<const Row> rows);

}  // namespace clockwise::simulate
