#include "cache/conditions.h"

#include <algorithm>

#include "http/date.h"
#include "http/octets.h"

namespace clockwise::cache {
namespace {

constexpr std::string_view kWeak = "W/";

std::string_view opaque(std::string_view tag) {
  return tag.starts_with(kWeak) ? tag.substr(kWeak.size()) : tag;
}

bool is_tag(std::string_view tag) {
  tag = opaque(tag);
  return tag.size() >= 2 && tag.front() == '"' && tag.back() == '"' &&
         tag.find('"', 1) == tag.size() - 1;
}

// Calls `f` with each entity tag of a list until it says true; commas may stand inside of tags. A
// member that is no tag is passed over.
template <class F>
bool any_tag(std::string_view list, F f) {
  while (!list.empty()) {
    (void)http::take_while(list, [](char c) { return c == ',' || http::is(c, http::kBlank); });
    const std::size_t open = list.starts_with(kWeak) ? kWeak.size() : 0;
    std::size_t end = std::min(list.find(','), list.size());
    if (open < list.size() && list[open] == '"') {
      const std::size_t close = list.find('"', open + 1);
      if (close == std::string_view::npos) return false;
      end = close + 1;
    }
    const std::string_view tag = http::trim(list.substr(0, end));
    if (is_tag(tag) && f(tag)) return true;
    list.remove_prefix(end);
  }
  return false;
}

}  // namespace

bool weak_match(std::string_view a, std::string_view b) noexcept {
  return is_tag(a) && is_tag(b) && opaque(a) == opaque(b);
}

bool strong_match(std::string_view a, std::string_view b) noexcept {
  return a == b && is_tag(a) && !a.starts_with(kWeak);
}

bool not_modified(const Lines& if_none_match, const Lines& if_modified_since,
                  const Validators& stored, std::int64_t now) {
  if (!if_none_match.empty()) {
    return std::ranges::any_of(if_none_match, [&](std::string_view line) {
      return http::trim(line) == "*" ||
             any_tag(line, [&](std::string_view tag) { return weak_match(tag, stored.etag); });
    });
  }
  if (if_modified_since.size() != 1) return false;
  const auto since = http::parse_date(if_modified_since.front(), now);
  const Seconds changed = stored.last_modified.value_or(stored.date.value_or(stored.received));
  return since && changed <= *since;
}

bool range_applies(const Lines& if_range, const Validators& stored, std::int64_t now) {
  if (if_range.empty()) return true;
  if (if_range.size() != 1) return false;
  const std::string_view value = if_range.front();
  if (value.starts_with('"') || value.starts_with(kWeak)) return strong_match(value, stored.etag);
  // A date is a strong validator only if it is surely older than the answer (RFC 9110 8.8.2.2).
  const auto date = http::parse_date(value, now);
  return date && stored.last_modified == date && stored.date && *stored.date - *date >= 1;
}

}  // namespace clockwise::cache
