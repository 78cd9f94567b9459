#include "simulate/keys.h"

#include <fmt/format.h>

#include <charconv>

namespace clockwise::simulate {
namespace {

constexpr std::uint64_t kMostKeys = 1'000'000'000;
constexpr std::size_t kDigits = 20;  // of the largest number

}  // namespace

Result<KeySeries> KeySeries::parse(std::string_view format, std::uint64_t count) {
  const std::size_t place = format.find("{}");
  if (place == std::string_view::npos || format.find("{}", place + 2) != std::string_view::npos)
    return fail(fmt::format(
        "the key format \"{}\" needs {{}} once, where the number of the key stands", format));
  if (count == 0 || count > kMostKeys)
    return fail(fmt::format("{} keys: 1 to {} are possible", count, kMostKeys));
  return KeySeries(format.substr(0, place), format.substr(place + 2), count);
}

std::string_view KeySeries::write(std::uint64_t number, std::string& buffer) const {
  buffer.assign(prefix_);
  buffer.resize(prefix_.size() + kDigits);
  char* const digits = buffer.data() + prefix_.size();
  const char* const end = std::to_chars(digits, digits + kDigits, number).ptr;
  buffer.resize(static_cast<std::size_t>(end - buffer.data()));
  buffer += suffix_;
  return buffer;
}

}  // namespace clockwise::simulate
