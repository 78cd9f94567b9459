// A call to the admin API of a running proxy, for commands: one request, one answer, with
// deadlines.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::cli {

struct AdminCall {
  std::string method = "GET";
  std::string target = "/";
  std::string token;  // empty: none is sent
  std::chrono::seconds connect_timeout{5};
  std::chrono::seconds answer_timeout{120};  // a reload builds rings and waits for writers
};

struct AdminAnswer {
  unsigned status = 0;
  std::string body;
};

// `url`: "http://host:port", "host:port" or "unix:/path".
[[nodiscard]] Result<AdminAnswer> call_admin(const std::string& url, const AdminCall& call);

}  // namespace clockwise::cli
