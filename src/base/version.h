// What this binary is; filled in by cmake/version.cpp.in.
#pragma once

#include <string_view>

namespace clockwise {

std::string_view version() noexcept;   // "0.1.0"
std::string_view revision() noexcept;  // first 12 digits of the commit, or "unknown"
std::string_view compiler() noexcept;  // "Clang 19.1.7"

}  // namespace clockwise
