#include "import/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/values.h"

namespace clockwise::importer {
namespace {

constexpr std::size_t kLongest = 64;

bool is_kept(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_';
}

}  // namespace

std::string name_from(std::string_view text, std::string_view fallback) {
  if (text.starts_with("unix:")) text.remove_prefix(5);
  std::string name;
  for (const char c : text) {
    if (is_kept(c))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  if (config::looks_like_address(text)) std::replace(name.begin(), name.end(), '.', '-');
  if (name.size() > kLongest) name.erase(0, name.size() - kLongest);  // the end tells more
  return name.empty() ? std::string(fallback) : name;
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::string Names::take(std::string name) {
  std::string unique = name;
  for (std::size_t number = 2; !taken_.insert(unique).second; ++number) {
    const std::string ending = fmt::format("-{}", number);
    unique = name.substr(0, kLongest - ending.size()) + ending;
  }
  return unique;
}

}  // namespace clockwise::importer
