// What was found wrong in all files of one load: problems refuse it, warnings do not.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/source.h"

namespace clockwise::config {

class Report {
 public:
  // Files are listed in the order of this call, whatever the order their problems come in.
  void begin_file(const std::string& name);

  void error(Problem problem, FailureCode code = FailureCode::invalid);
  void warning(Problem problem);
  // Puts off what is not worth a look while anything is wrong: take_warnings() does it first.
  void when_valid(std::function<void()> look);

  // So many problems that further ones are no longer listed.
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] bool is_full_of_warnings() const noexcept;
  [[nodiscard]] bool failed() const noexcept { return !errors_.empty(); }

  // Both in the order of file and line. REQUIRES: failed().
  [[nodiscard]] Failure take_failure();
  // REQUIRES: !failed(), and what was put off refers to still lives.
  [[nodiscard]] std::vector<Problem> take_warnings();

 private:
  void sort(std::vector<Problem>& problems) const;

  std::map<std::string, std::size_t> files_;
  std::vector<Problem> errors_;
  std::vector<Problem> warnings_;
  std::vector<std::function<void()>> looks_;
  bool invalid_ = false;
};

}  // namespace clockwise::config
