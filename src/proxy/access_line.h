// One line of the access log, as text.
//
// Pure. What a client sent is escaped so that it can neither end the line nor leave its field:
// JSON lines are always valid JSON in valid UTF-8, combined lines are plain ASCII as nginx writes
// them.
#pragma once

#include <ctime>
#include <string>

#include "config/model.h"
#include "proxy/access_log.h"

namespace clockwise::proxy {

// Formats lines one after the other. Keeps the text of the current second, the costly part of a
// line; not shared between threads.
class LineFormat {
 public:
  explicit LineFormat(config::LogFormat format) : format_(format) {}

  // Appends the line with its newline to `out`.
  void append(const AccessRecord& record, std::string& out);

 private:
  void append_json(const AccessRecord& record, std::string& out);
  void append_combined(const AccessRecord& record, std::string& out);
  void refresh_second(std::chrono::system_clock::time_point time);

  config::LogFormat format_;
  std::time_t second_ = -1;
  std::string second_text_;
};

}  // namespace clockwise::proxy
