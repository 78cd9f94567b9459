#include "import/files.h"

#include <glob.h>

namespace clockwise::importer {
namespace {

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

}  // namespace

Files real_files() { return {config::real_files(), matches}; }

}  // namespace clockwise::importer
