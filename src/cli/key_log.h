// Keys out of the user's own files: plain lists, and access logs, whose key is the request target.
//
// Pure; the caller reads the lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clockwise::cli {

enum class KeyFormat {
  plain,     // one key a line
  combined,  // the access log of nginx and Apache (also "common"), and ours with format: combined
  json,      // one object a line
};

// By the first line of a file that is not empty.
[[nodiscard]] KeyFormat detect_key_format(std::string_view line);

// The key of a line, or nothing when it has none (a request that could not be read, an empty line).
// JSON: the first of the fields target, request_uri, request ("GET /x HTTP/1.1"), uri, url, path.
[[nodiscard]] std::optional<std::string> key_of_line(std::string_view line, KeyFormat format);

}  // namespace clockwise::cli
