// One builder per family of schemes; build() in scheme.cpp chooses.
//
// Each gets a valid scheme (see SchemeFacts) and the members in the order of the list. The limit on
// points was checked before.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ring/scheme.h"

namespace clockwise::ring {

using Members = std::span<const Member>;
using BuiltRing = std::shared_ptr<const Ring>;

// The default scheme, `clockwise`: XXH64 with seed 0 on a circle of 2^64. Point i of a server is
// XXH64(LABEL + "-" + i); a server has floor(points × weight + 0.5) of them, however many others
// there are, so that a change of one server never moves a key between two others. Points of equal
// position: the smaller label owns it (of equal labels, the earlier in the list).
[[nodiscard]] BuiltRing build_clockwise(const Scheme& scheme, Members members);
[[nodiscard]] std::vector<std::uint64_t> clockwise_counts(const Scheme& scheme, Members members);

}  // namespace clockwise::ring
