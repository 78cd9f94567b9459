// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace clockwise::cli {

// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t number);

// 0.19621 -> "19.62 %".
[[nodiscard]] std::string percent(double ratio);

}  // namespace clockwise::cli
