#include "http/accept.h"

#include <algorithm>

#include "http/octets.h"

namespace clockwise::http {
namespace {

constexpr int kFullQuality = 1000;

// qvalue in thousandths: "0.5" -> 500. What is malformed counts as no wish at all.
int quality(std::string_view value) {
  if (value.empty() || value.size() > 5 || (value[0] != '0' && value[0] != '1')) return 0;
  int thousandths = (value[0] - '0') * kFullQuality;
  if (value.size() > 1 && value[1] != '.') return 0;
  int unit = 100;
  for (const char octet : value.substr(std::min<std::size_t>(2, value.size()))) {
    if (!is(octet, kDigit)) return 0;
    thousandths += (octet - '0') * unit;
    unit /= 10;
  }
  return std::min(thousandths, kFullQuality);
}

// The q parameter among `;`-separated parameters.
int quality_of(std::string_view parameters) {
  while (!parameters.empty()) {
    parameters.remove_prefix(1);
    const std::size_t next = std::min(parameters.find(';'), parameters.size());
    const std::string_view parameter = trim(parameters.substr(0, next));
    if (same_ignoring_case(parameter.substr(0, 2), "q=")) return quality(parameter.substr(2));
    parameters.remove_prefix(next);
  }
  return kFullQuality;
}

}  // namespace

bool prefers_json(std::string_view accept) noexcept {
  constexpr auto kNone = std::string_view::npos;
  if (accept.find('j') == kNone && accept.find('J') == kNone) return false;
  int json = 0;
  int plain = -1;
  int text = -1;
  int any = -1;
  each_member(accept, [&](std::string_view member) {
    const std::size_t type_end = std::min(member.find(';'), member.size());
    const std::string_view type = trim(member.substr(0, type_end));
    const int wish = quality_of(member.substr(type_end));
    if (same_ignoring_case(type, "application/json")) json = wish;
    if (same_ignoring_case(type, "text/plain")) plain = wish;
    if (same_ignoring_case(type, "text/*")) text = wish;
    if (type == "*/*") any = wish;
    return true;
  });
  const bool plain_named = plain >= 0;
  const int wanted_plain = plain_named ? plain : std::max(text >= 0 ? text : any, 0);
  return json > 0 && (json > wanted_plain || (json == wanted_plain && !plain_named));
}

}  // namespace clockwise::http
