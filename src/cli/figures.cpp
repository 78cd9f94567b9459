#include "cli/figures.h"

#include <fmt/format.h>

namespace clockwise::cli {

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string percent(double ratio) { return fmt::format("{:.2f} %", ratio * 100); }

}  // namespace clockwise::cli
