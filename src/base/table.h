// Rows of text as a person reads them: columns as wide as they need, the first one to the left, all
// others to the right. For ASCII, where octets are columns.
#pragma once

#include <string>
#include <vector>

namespace clockwise {

class Table {
 public:
  // Rows may differ in length.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // Indented by two; every row ends with a newline.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace clockwise
