#include "config/key_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/suggest.h"
#include "config/values.h"

namespace clockwise::config {
namespace {

constexpr std::array<std::string_view, 9> kPlaceholders{
    "uri",    "path",      "query",          "host",        "scheme",
    "method", "client_ip", "uri:normalized", "path:decoded"};
constexpr std::array<std::string_view, 3> kWithName{"query", "header", "cookie"};
constexpr std::array<std::string_view, 12> kShown{
    "uri",       "path",           "query",        "host",       "scheme",      "method",
    "client_ip", "uri:normalized", "path:decoded", "query:NAME", "header:NAME", "cookie:NAME"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_placeholder(std::string_view inside) {
  if (contains(kPlaceholders, inside)) return true;
  const std::size_t colon = inside.find(':');
  return colon != std::string_view::npos && colon + 1 < inside.size() &&
         contains(kWithName, inside.substr(0, colon));
}

// The first thing that is wrong with the braces and what stands in them.
std::optional<std::string> fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '}') return "has a } without a {";
    if (text[at] != '{') continue;
    const std::size_t close = text.find('}', at);
    if (close == std::string_view::npos) return "has a { without a }";
    const std::string_view inside = text.substr(at + 1, close - at - 1);
    if (!is_placeholder(inside))
      return fmt::format("has an unknown placeholder {{{}}}{}", inside,
                         did_you_mean(inside, kShown));
    at = close;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> parse_key_template(std::string_view text) {
  if (text.empty() || text == "{uri}") return valid("{uri}");
  if (auto message = fault(text)) return fail(*std::move(message));
  return fail("is not supported yet; the only key is \"{uri}\"");
}

}  // namespace clockwise::config
