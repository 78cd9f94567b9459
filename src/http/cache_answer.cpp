#include "http/cache_answer.h"

#include <algorithm>
#include <array>

#include "http/octets.h"

namespace clockwise::http {
namespace {

// Where the first piece of a list ends: at a separator outside of quoted strings, or at its end.
std::size_t piece_end(std::string_view list, char separator) noexcept {
  bool quoted = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"') {
      quoted = !quoted;
    } else if (quoted && list[i] == '\\') {
      ++i;
    } else if (!quoted && list[i] == separator) {
      return i;
    }
  }
  return list.size();
}

std::string_view last_member(std::string_view list) noexcept {
  for (std::size_t end = piece_end(list, ','); end < list.size(); end = piece_end(list, ','))
    list.remove_prefix(end + 1);
  return trim(list);
}

// The name of a cache and its parameters, RFC 9211 2.
CacheAnswer of_cache_status(std::string_view value) noexcept {
  std::string_view rest = last_member(value);
  rest.remove_prefix(piece_end(rest, ';'));
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view parameter = trim(rest.substr(0, piece_end(rest, ';')));
    if (parameter == "hit" || parameter == "hit=?1") return CacheAnswer::hit;
    if (parameter.starts_with("fwd=")) return CacheAnswer::miss;
    rest.remove_prefix(piece_end(rest, ';'));
  }
  return CacheAnswer::unknown;
}

bool contains_word(std::string_view text, std::string_view word) noexcept {
  const auto same = [](char a, char b) { return lower(a) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

// "HIT", "MISS from proxy-1", "TCP_MEM_HIT:NONE", "Hit from cloudfront", "MISS, HIT".
CacheAnswer of_x_cache(std::string_view value) noexcept {
  constexpr std::array<std::string_view, 6> kAsked{"miss",        "pass",    "expired",
                                                   "revalidated", "refresh", "dynamic"};
  constexpr std::array<std::string_view, 3> kKept{"hit", "stale", "updating"};
  const std::string_view member = last_member(value);
  const std::string_view word = member.substr(0, member.find_first_of(" :;"));
  const auto among = [word](std::string_view known) { return contains_word(word, known); };
  if (std::ranges::any_of(kAsked, among)) return CacheAnswer::miss;
  return std::ranges::any_of(kKept, among) ? CacheAnswer::hit : CacheAnswer::unknown;
}

// A cache that has just fetched says 0, or says nothing.
CacheAnswer of_age(std::string_view value) noexcept {
  if (value.empty() || !all(value, kDigit)) return CacheAnswer::unknown;
  return value.find_first_not_of('0') == std::string_view::npos ? CacheAnswer::miss
                                                                : CacheAnswer::hit;
}

struct Source {
  std::string_view name;  // lower case
  CacheAnswer (*read)(std::string_view value) noexcept;
};

// By how much they are worth.
constexpr std::array<Source, 4> kSources{{{"cache-status", of_cache_status},
                                          {"x-cache-status", of_x_cache},
                                          {"x-cache", of_x_cache},
                                          {"age", of_age}}};

constexpr std::uint64_t kSizes = [] {
  std::uint64_t sizes = 0;
  for (const Source& source : kSources) sizes |= std::uint64_t{1} << source.name.size();
  return sizes;
}();

bool is_worth_a_look(const FieldLine& line) noexcept {
  return line.name_size < 64 && (kSizes >> line.name_size & 1) != 0;
}

}  // namespace

CacheAnswer cache_answer(std::string_view head, std::span<const FieldLine> fields) noexcept {
  // The answer of each source; of several lines the last one that tells.
  std::array<CacheAnswer, kSources.size()> told{};
  for (const FieldLine& line : fields) {
    if (!is_worth_a_look(line)) continue;
    const std::string_view name = name_of(head, line);
    for (std::size_t i = 0; i < kSources.size(); ++i) {
      if (!same_ignoring_case(name, kSources[i].name)) continue;
      const CacheAnswer answer = kSources[i].read(value_of(head, line));
      if (answer != CacheAnswer::unknown) told[i] = answer;
    }
  }
  const auto first =
      std::ranges::find_if(told, [](CacheAnswer answer) { return answer != CacheAnswer::unknown; });
  return first == told.end() ? CacheAnswer::unknown : *first;
}

}  // namespace clockwise::http
