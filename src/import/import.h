// Takes over the pools of another program: its configuration file in, pools here out.
//
// Pure but for the reader that follows `include`. Every directive ends in one of three ways: it is
// carried over, it has a note that says what to do instead, or the file is refused with the place
// of what is wrong. May take long for large files: never call it on an event loop.
//
//   const auto outcome = read(Format::nginx, source, config::real_files());
//   if (const auto* import = std::get_if<Import>(&outcome)) std::cout << to_yaml(*import);
#pragma once

#include <variant>
#include <vector>

#include "config/load.h"
#include "config/source.h"
#include "import/format.h"
#include "import/pool.h"

namespace clockwise::importer {

using Problems = std::vector<config::Problem>;  // never empty
using Outcome = std::variant<Import, Problems>;

// `source` is the file; `read` opens those that it includes, relative to its folder.
[[nodiscard]] Outcome read(Format format, const config::Source& source,
                           const config::FileReader& read);

}  // namespace clockwise::importer
