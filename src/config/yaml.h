// Text to one Document, strictly: the only place that knows the YAML library.
//
// Refused here, each with its place: syntax errors, a quote or bracket that is never closed (how a
// cut file often ends), no document or several, tags, keys that are not plain text, aliases of
// themselves, more than kMaxDepth levels or kMaxNodes values (aliases counted as often as used).
#pragma once

#include <optional>

#include "config/node.h"
#include "config/report.h"

namespace clockwise::config {

inline constexpr std::size_t kMaxDepth = 64;
// Of one outermost bracket: the library keeps some 700 octets for each value in it.
inline constexpr std::size_t kMaxCommas = 500'000;
inline constexpr std::size_t kMaxNodes = 4'000'000;

// Nothing when the text is no tree at all; problems stand in the report. A tag or an odd key is
// reported too, but leaves the tree usable, so that the caller can look for further problems.
[[nodiscard]] std::optional<Document> parse_yaml(const Source& source, Report& report);

}  // namespace clockwise::config
