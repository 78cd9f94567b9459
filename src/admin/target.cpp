#include "admin/target.h"

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <charconv>

namespace clockwise::admin {

namespace {

// Cuts the part before `separator` off the front of `text`.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// "http://host/path" -> "/path"
std::string_view without_authority(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (boost::algorithm::istarts_with(text, scheme))
      return text.substr(std::min(text.find_first_of("/?#", scheme.size()), text.size()));
  return text;
}

}  // namespace

std::vector<std::string> Target::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : query)
    if (key == name) values.push_back(value);
  return values;
}

std::optional<std::string> Target::first(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return value;
  return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned octet = 0;
    const char* const end = digits.data() + digits.size();
    const auto [last, error] = std::from_chars(digits.data(), end, octet, 16);
    if (digits.size() < 2 || error != std::errc{} || last != end) return std::nullopt;
    decoded += static_cast<char>(octet);
    i += 2;
  }
  return decoded;
}

std::optional<Target> parse_target(std::string_view text) {
  Target target;
  text = without_authority(text.substr(0, text.find('#')));
  std::string_view path = take_part(text, '?');
  while (!path.empty()) {
    const std::string_view segment = take_part(path, '/');
    if (segment.empty()) continue;
    auto decoded = percent_decoded(segment);
    if (!decoded) return std::nullopt;
    target.path.push_back(std::move(*decoded));
  }
  while (!text.empty()) {
    std::string_view value = take_part(text, '&');
    if (value.empty()) continue;
    auto name = percent_decoded(take_part(value, '='));
    auto decoded = percent_decoded(value);
    if (!name || !decoded) return std::nullopt;
    target.query.emplace_back(std::move(*name), std::move(*decoded));
  }
  return target;
}

}  // namespace clockwise::admin
