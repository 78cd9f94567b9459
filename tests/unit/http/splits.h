// Feeds a scanner in pieces: the answer must not depend on where the octets were cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "http/head.h"

namespace clockwise::http::test {

// All that a scan says, as text: two scans agree when these are equal.
inline std::string summary(std::string_view input, Progress progress, const Refusal& refusal) {
  if (progress == Progress::incomplete) return "incomplete of " + std::to_string(input.size());
  return std::to_string(refusal.status) + " " + std::string(refusal.text);
}

inline std::string lines_of(std::string_view input, const std::vector<FieldLine>& fields) {
  std::string text;
  for (const FieldLine& line : fields) {
    text.append(name_of(input, line)).append("=").append(value_of(input, line));
    text += "#" + std::to_string(static_cast<int>(line.id)) + (line.hop_by_hop ? "-\n" : "\n");
  }
  return text;
}

inline std::string summary(std::string_view input, Progress progress, const RequestHead& head) {
  if (progress != Progress::complete) return summary(input, progress, head.refusal);
  std::string text;
  for (const std::string_view part : {head.method, head.target, head.uri, head.authority}) {
    text.append(part).append("|");
  }
  for (const auto number :
       {static_cast<int>(head.method_id), int{head.absolute_form}, int{head.origin_line},
        int{head.minor_version}, int{head.keep_alive}, int{head.accepts_json}, head.max_forwards,
        static_cast<int>(head.body.kind)}) {
    text += std::to_string(number) + "|";
  }
  text += std::to_string(head.body.length) + "|" + std::to_string(head.line_end) + "|" +
          std::to_string(head.size) + "\n";
  return text + lines_of(input, head.fields);
}

inline std::string summary(std::string_view input, Progress progress, const ResponseHead& head) {
  if (progress != Progress::complete) return summary(input, progress, head.refusal);
  std::string text;
  for (const auto number : {int{head.status}, int{head.minor_version}, int{head.keep_alive},
                            int{head.reusable}, static_cast<int>(head.body.kind)}) {
    text += std::to_string(number) + "|";
  }
  text += std::to_string(head.body.length) + "|" + std::to_string(head.reason_end) + "|" +
          std::to_string(head.line_end) + "|" + std::to_string(head.size) + "\n";
  return text + lines_of(input, head.fields);
}

// `scan(prefix, scanned)` is called for growing prefixes that end at each of `cuts` and at the end;
// stops at the first answer, as a connection would.
template <class Scan>
Progress scan_in_pieces(std::string_view input, const std::vector<std::size_t>& cuts, Scan scan) {
  std::size_t scanned = 0;
  for (const std::size_t cut : cuts) {
    const Progress progress = scan(input.substr(0, cut), scanned);
    if (progress != Progress::incomplete) return progress;
  }
  return scan(input, scanned);
}

inline std::vector<std::size_t> every_octet(std::string_view input) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < input.size(); ++i) cuts.push_back(i);
  return cuts;
}

}  // namespace clockwise::http::test
