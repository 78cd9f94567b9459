#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace clockwise::config {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool is_alphanumeric(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Decimal digits without a leading zero; nothing when they are not that, or too many.
std::optional<std::uint64_t> plain_integer(std::string_view text) {
  if (!is_digits(text) || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

// `17` or `17.25`.
std::optional<double> plain_number(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (!plain_integer(text.substr(0, dot))) return std::nullopt;
  if (dot != std::string_view::npos && !is_digits(text.substr(dot + 1))) return std::nullopt;
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 5> kDurationUnits{
    {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<Unit, 7> kSizeUnits{{{"", 1},
                                          {"k", 1ULL << 10},
                                          {"m", 1ULL << 20},
                                          {"g", 1ULL << 30},
                                          {"KiB", 1ULL << 10},
                                          {"MiB", 1ULL << 20},
                                          {"GiB", 1ULL << 30}}};

// Digits and one of the units, multiplied; nothing when it is not that, or overflows.
template <std::size_t N>
std::optional<std::uint64_t> with_unit(std::string_view text, const std::array<Unit, N>& units) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = static_cast<std::size_t>(end - text.begin());
  const std::optional<std::uint64_t> value = plain_integer(text.substr(0, digits));
  if (!value) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != text.substr(digits)) continue;
    if (*value > std::numeric_limits<std::uint64_t>::max() / unit.factor) return std::nullopt;
    return *value * unit.factor;
  }
  return std::nullopt;
}

constexpr milliseconds kLongest = std::chrono::hours{24 * 366};

std::string duration_text(milliseconds value) {
  const auto count = static_cast<std::uint64_t>(value.count());
  for (auto unit = kDurationUnits.rbegin(); unit != kDurationUnits.rend(); ++unit)
    if (count >= unit->factor && count % unit->factor == 0)
      return fmt::format("{}{}", count / unit->factor, unit->name);
  return "0s";
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  for (auto unit = kSizeUnits.rbegin(); unit != kSizeUnits.rend(); ++unit)
    if (bytes >= unit->factor && bytes % unit->factor == 0)
      return fmt::format("{}{}", bytes / unit->factor, unit->name);
  return "0";
}

Result<std::uint64_t> parse_integer(std::string_view text, std::uint64_t low, std::uint64_t high) {
  const std::optional<std::uint64_t> value = plain_integer(text);
  if (value && *value >= low && *value <= high) return *value;
  return fail(fmt::format("is not a whole number from {} to {}", low, high));
}

Result<double> parse_number(std::string_view text, double low, double high) {
  const std::optional<double> value = plain_number(text);
  if (value && *value >= low && *value <= high) return *value;
  return fail(fmt::format("is not a number from {} to {}", low, high));
}

Result<milliseconds> parse_duration(std::string_view text, milliseconds low) {
  const auto count = with_unit(text, kDurationUnits);
  if (!count) {
    if (is_digits(text))
      return fail("has no unit; a duration is written like 250ms, 5s, 1m, 2h, 7d");
    return fail("is not a duration such as 250ms, 5s, 1m, 2h, 7d");
  }
  if (*count > static_cast<std::uint64_t>(kLongest.count())) return fail("is longer than 366d");
  const milliseconds value{static_cast<milliseconds::rep>(*count)};
  if (value < low) return fail(fmt::format("is shorter than {}", duration_text(low)));
  return value;
}

Result<std::uint64_t> parse_size(std::string_view text, std::uint64_t low, std::uint64_t high) {
  const auto bytes = with_unit(text, kSizeUnits);
  if (!bytes) return fail("is not a size such as 4096, 64k, 512MiB, 1g");
  if (*bytes >= low && *bytes <= high) return *bytes;
  return fail(fmt::format("is not a size from {} to {}", size_text(low), size_text(high)));
}

Result<double> parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  const auto value = plain_number(percent ? text.substr(0, text.size() - 1) : text);
  if (!value) return fail("is not a share such as 60% or 0.6");
  if (percent && *value <= 100) return *value / 100;
  if (!percent && *value <= 1) return *value;
  if (!percent && *value <= 100)
    return fail(fmt::format("is not a share: write {}%, or a number from 0 to 1", text));
  return fail("is above 100%");
}

Result<std::string> parse_name(std::string_view text) {
  const auto allowed = [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  if (!text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), allowed))
    return valid(std::string(text));
  return fail("is not a name: 1 to 64 of A-Z a-z 0-9 . _ : -");
}

}  // namespace clockwise::config
