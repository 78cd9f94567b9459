// From the directory's view to the values of the metrics page.
#pragma once

#include "config/model.h"
#include "metrics/page.h"
#include "metrics/process.h"
#include "upstream/directory.h"

namespace clockwise::admin {

// How much is said about single servers: what the configuration asks for, but never the histogram
// of more than kFullDetail servers.
inline constexpr std::size_t kFullDetail = 500;
[[nodiscard]] config::PerBackend backend_detail(const upstream::View& view);

void collect(const upstream::View& view, const metrics::ProcessFacts& process, metrics::Page& page);

}  // namespace clockwise::admin
