// Takes over the pools of another program: its configuration file in, pools here out.
//
// Pure but for the files that `include` leads to. Every directive ends in one of three ways: it is
// carried over, it has a note that says what to do instead, or the file is refused with the place
// of what is wrong. May take long for large files: never call it on an event loop.
//
//   const auto outcome = read(Format::nginx, source, real_files());
//   if (const auto* import = std::get_if<Import>(&outcome)) std::cout << to_yaml(*import);
#pragma once

#include <variant>
#include <vector>

#include "config/source.h"
#include "import/files.h"
#include "import/format.h"
#include "import/pool.h"

namespace clockwise::importer {

using Problems = std::vector<config::Problem>;  // never empty
using Outcome = std::variant<Import, Problems>;

// `source` is the file; `files` reaches those that it includes, relative to its folder.
[[nodiscard]] Outcome read(Format format, const config::Source& source, const Files& files);

}  // namespace clockwise::importer
