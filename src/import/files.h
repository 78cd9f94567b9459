// How an import reaches other files than the one it was given.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/load.h"

namespace clockwise::importer {

struct Files {
  config::FileReader read;
  // The files that a pattern with `*`, `?` or `[` names, as glob(3) has it: by name, a leading dot
  // only where it is written.
  std::function<std::vector<std::string>(const std::string& pattern)> match;
};

[[nodiscard]] Files real_files();

}  // namespace clockwise::importer
