// Collects what an import cannot carry over.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/pool.h"

namespace clockwise::importer {

// One line that hides nothing, whatever the source had in it: what is not printable becomes `?`.
[[nodiscard]] std::string printable(std::string_view text);

class Notes {
 public:
  // The same message on several lines of a file becomes one note that names them all.
  void add(std::string_view file, std::uint32_t line, std::string message);

  // By file in the order of their first note, then by line. Leaves this empty.
  [[nodiscard]] std::vector<Note> take();

 private:
  std::vector<Note> notes_;
  std::map<std::pair<std::string, std::string>, std::size_t> seen_;  // file and message
  std::map<std::string, std::size_t> files_;
};

}  // namespace clockwise::importer
