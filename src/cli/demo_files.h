// The files of the demo: the shipped example on the demo's own addresses, and the edits that an
// operator would make to its list of servers.
//
// Pure: text in, text out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace clockwise::cli {

struct DemoPorts {
  std::uint16_t proxy = 0, admin = 0;
  std::vector<std::uint16_t> servers;  // those of the list, then the spare ones
};

struct DemoFiles {
  std::string configuration;
  std::string upstreams;  // ends with a line in a comment for each spare server
};

// Names of the servers in a list, in its order; lines in comments do not count.
[[nodiscard]] std::vector<std::string> server_names(std::string_view upstreams);

// The spare server after `names`: of the same family, one higher ("cache-4" -> "cache-5").
[[nodiscard]] std::string next_name(const std::vector<std::string>& names);

// Fails when the example no longer has the addresses that the demo replaces.
// REQUIRES: at least as many server ports as the list has servers.
[[nodiscard]] Result<DemoFiles> demo_files(std::string_view configuration,
                                           std::string_view upstreams, const DemoPorts& ports);

// The list after one edit of the line that names `server`.
[[nodiscard]] std::string with_comment_removed(std::string_view upstreams, std::string_view server);
[[nodiscard]] std::string without(std::string_view upstreams, std::string_view server);
[[nodiscard]] std::string with_weight(std::string_view upstreams, std::string_view server,
                                      std::string_view weight);

}  // namespace clockwise::cli
