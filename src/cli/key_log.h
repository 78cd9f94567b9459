// Requests out of the user's own files: plain lists of keys, and access logs.
//
// Pure; the caller reads the lines. Millions pass through here, so nothing is copied but what a log
// had to escape.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/key_template.h"

namespace clockwise::cli {

enum class KeyFormat {
  plain,     // one key a line
  combined,  // the access log of nginx and Apache (also "common"), and ours with format: combined
  json,      // one object a line: ours, nginx, Caddy, Envoy, Traefik
};

[[nodiscard]] std::string_view to_string(KeyFormat format) noexcept;

// Of one line.
[[nodiscard]] KeyFormat detect_key_format(std::string_view line);

// Of the first lines of a file, so many as are enough: a rotated log may start in the middle of a
// line, or with a request that could not be read. One line of a log makes it a log, since keys that
// look like one are rarer than logs with other lines in them; of both kinds the more frequent, of
// equally many the first.
inline constexpr std::size_t kLinesToDetect = 10;
[[nodiscard]] KeyFormat detect_key_format(std::span<const std::string> lines);

// Reads the lines of one log. One thread.
//
// A combined line may have the virtual host before the client, as Apache's vhost_combined has it
// ("www.example.com:443 10.0.0.9 - - [..."): then it tells the host, and the scheme where the port
// is 80 or 443.
class LogReader {
 public:
  explicit LogReader(KeyFormat format) : format_(format) {}

  // The request of a line as far as the log has it (no header fields), the target in origin-form;
  // nothing when the line has none: it is cut off, or of a request that could not be read. The
  // views hold until the next call. REQUIRES: a format that is not plain.
  //
  // JSON fields, the first one that is there: of the target request_uri, target, request
  // ("GET /x HTTP/1.1"), uri, url, path, RequestPath (with args or query behind it where it has
  // none); of the host host, http_host, authority, RequestHost, server_name; of the client client,
  // remote_addr, client_ip, remote_ip, ClientHost; method, request_method, RequestMethod; scheme,
  // RequestScheme. They may lie in an object "request".
  [[nodiscard]] std::optional<http::KeyParts> request(std::string_view line);

 private:
  std::optional<http::KeyParts> combined(std::string_view line);
  std::optional<http::KeyParts> json(std::string_view line);

  KeyFormat format_;
  std::array<std::string, 4> unescaped_;
  std::string joined_;
};

}  // namespace clockwise::cli
