// What commands share when they start from a configuration file. Problems go to stderr, in full.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/load.h"

namespace clockwise::cli {

// "clockwise COMMAND: message" on stderr; returns kError.
int complain(std::string_view command, std::string_view message);

// Prints every problem to stderr.
void report(const config::Failure& failure);

// The loaded file, without warnings, or nothing when it has problems, which then have been
// reported.
[[nodiscard]] std::optional<config::Loaded> load_or_report(
    const std::string& path, const config::FileReader& read = config::real_files());

// The pool of that name; without a name the only one. The error names what there is.
[[nodiscard]] Result<const config::Pool*> choose_pool(const config::Config& config,
                                                      const std::string& name);

}  // namespace clockwise::cli
