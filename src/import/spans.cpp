#include "import/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace clockwise::importer {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr milliseconds kLongest = std::chrono::hours(24) * 365;

std::optional<microseconds> unit_of(std::string_view word, milliseconds bare) {
  constexpr std::array<std::pair<std::string_view, microseconds>, 7> kUnits{
      {{"us", 1us}, {"ms", 1ms}, {"s", 1s}, {"m", 1min}, {"h", 1h}, {"d", 24h}, {"w", 168h}}};
  if (word.empty()) return bare;
  for (const auto& [name, unit] : kUnits)
    if (name == word) return unit;
  return std::nullopt;
}

}  // namespace

std::optional<milliseconds> parse_span(std::string_view text, milliseconds bare) {
  if (text.empty()) return std::nullopt;
  std::chrono::duration<double, std::micro> sum{0};
  while (!text.empty()) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    const std::size_t word = std::min(text.find_first_of("0123456789"), text.size());
    const std::optional<microseconds> unit = unit_of(text.substr(0, word), bare);
    if (!unit) return std::nullopt;
    sum += number * *unit;
    text.remove_prefix(word);
    if (sum > kLongest) return std::nullopt;
  }
  return std::chrono::duration_cast<milliseconds>(sum);
}

std::string span_text(milliseconds span) {
  return span % 1s == 0ms ? fmt::format("{}s", span / 1s) : fmt::format("{}ms", span.count());
}

}  // namespace clockwise::importer
