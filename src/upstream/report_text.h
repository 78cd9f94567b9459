// The JSON text of a REPORT, written piece by piece: one in which every server of a thousand gives
// something to every other has 70 MB.
#pragma once

#include <functional>
#include <string_view>

#include "upstream/plan.h"

namespace clockwise::upstream {

// The text of to_json(report), handed to `sink` in pieces of some 64 KiB.
void write_json(const Report& report, const std::function<void(std::string_view)>& sink);

}  // namespace clockwise::upstream
