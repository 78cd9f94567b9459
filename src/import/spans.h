// Lengths of time as other programs write them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace clockwise::importer {

using std::chrono::milliseconds;

// `90`, `60s`, `1h30m`, `0.25s`: numbers with units (us, ms, s, m, h, d, w), the units optional.
// A number without one counts `bare`. Nothing for anything else and for more than a year.
[[nodiscard]] std::optional<milliseconds> parse_span(std::string_view text, milliseconds bare);

// `30s` or `1500ms`, as the configuration here wants it.
[[nodiscard]] std::string span_text(milliseconds span);

}  // namespace clockwise::importer
