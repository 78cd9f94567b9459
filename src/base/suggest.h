// "did you mean": the known word that is closest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace clockwise {

// Nothing (an empty view) when no word is close. Case does not count.
[[nodiscard]] std::string_view closest(std::string_view word,
                                       std::span<const std::string_view> known);

// `, did you mean "servers"?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> known);

}  // namespace clockwise
