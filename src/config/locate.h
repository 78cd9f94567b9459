// Where a setting stands in its file, found again after the file was read: for problems that only
// show once the configuration meets the machine, such as a name that does not resolve.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/load.h"

namespace clockwise::config {

// The keys and list indexes that lead to a setting.
using Steps = std::vector<std::variant<std::string, std::size_t>>;

// The problem `MESSAGE` at the setting of `file` that `steps` lead to; at the file as a whole where
// the setting is not written or the file has changed since.
[[nodiscard]] Problem problem_at(const std::string& file, const Steps& steps, std::string message,
                                 const FileReader& read);

// The same for the address of a server, which may stand in an upstream file. The message is
// `PATH: MESSAGE`.
[[nodiscard]] Problem problem_at_address(const std::string& main_file, const Pool& pool,
                                         std::size_t server, std::string_view message,
                                         const FileReader& read);

}  // namespace clockwise::config
