// What to do about a directive of nginx that has no equal here.
#pragma once

#include <string_view>

namespace clockwise::importer {

// "is not carried over: compress on the servers"; never empty.
[[nodiscard]] std::string_view nginx_advice(std::string_view directive) noexcept;

}  // namespace clockwise::importer
