// A call to the admin API of a running proxy, for commands: one request, one answer, with
// deadlines.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clockwise::cli {

struct AdminCall {
  std::string method = "GET";
  std::string target = "/";
  std::string token = {};                    // empty: none is sent
  std::chrono::seconds connect_timeout{5};   // also for its name to be resolved
  std::chrono::seconds answer_timeout{120};  // a reload builds rings and waits for writers
  std::optional<std::chrono::milliseconds> deadline = {};  // for all steps together
};

struct AdminAnswer {
  unsigned status = 0;
  std::string body;
};

// `url`: "http://host:port", "host:port" or "unix:/path".
[[nodiscard]] Result<AdminAnswer> call_admin(const std::string& url, const AdminCall& call);

// The error for a URL that somebody else answers; `why` follows a colon.
[[nodiscard]] Error no_proxy(const std::string& url, std::string_view why);

// The object that an answer consists of. Whatever answers something else is no proxy.
[[nodiscard]] Result<boost::json::object> object_of(const std::string& url,
                                                    const AdminAnswer& answer);

// A call that is answered with 200 and an object; what the proxy says otherwise is the error.
[[nodiscard]] Result<boost::json::object> ask_admin(const std::string& url, const AdminCall& call);

}  // namespace clockwise::cli
