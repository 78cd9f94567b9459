// The rows of an experiment as a picture: one self-contained SVG without scripts, readable on light
// and on dark ground.
//
// On the left, for the schemes that take points: the load of each server against the number of
// points on a logarithmic axis, with the band 1 ± 1/√V. On the right: the share of the keys that
// each scheme moved, with the least that any scheme must move.
#pragma once

#include <span>
#include <string>

#include "simulate/experiment.h"

namespace clockwise::simulate {

// A picture shows one change: that of the first row; rows of another change are left out.
// REQUIRES: !rows.empty().
[[nodiscard]] std::string picture(std::span<const Row> rows);

}  // namespace clockwise::simulate
