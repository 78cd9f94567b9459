#include "cache/directives.h"

#include <algorithm>

#include "cache/structured.h"
#include "http/octets.h"

namespace clockwise::cache {
namespace {

using http::same_ignoring_case;

struct Flag {
  std::string_view name;
  bool Directives::* member;
};
// Those that forbid or delay; they hold in whatever shape they come.
constexpr Flag kRestrictions[] = {{"no-store", &Directives::no_store},
                                  {"must-revalidate", &Directives::must_revalidate},
                                  {"proxy-revalidate", &Directives::proxy_revalidate},
                                  {"no-transform", &Directives::no_transform},
                                  {"only-if-cached", &Directives::only_if_cached}};
// Those that permit; they hold only when they are well formed.
constexpr Flag kPermissions[] = {{"public", &Directives::is_public},
                                 {"must-understand", &Directives::must_understand},
                                 {"immutable", &Directives::immutable}};

struct Time {
  std::string_view name;
  std::optional<Seconds> Directives::* member;
};
constexpr Time kTimes[] = {{"max-age", &Directives::max_age},
                           {"s-maxage", &Directives::s_maxage},
                           {"stale-while-revalidate", &Directives::stale_while_revalidate},
                           {"stale-if-error", &Directives::stale_if_error},
                           {"min-fresh", &Directives::min_fresh},
                           {"max-stale", &Directives::max_stale}};

// One member of the list.
struct Member {
  std::string_view name;
  std::optional<std::string_view> value;  // quotes taken off
  bool well_formed = true;
};

// Walks the members of a line: commas inside quotes do not separate.
class Members {
 public:
  explicit Members(std::string_view line) : left_(line) {}

  bool next(Member& member) {
    (void)http::take_while(left_, [](char c) { return http::is(c, http::kBlank) || c == ','; });
    if (left_.empty()) return false;
    member = {};
    member.name = http::take_while(left_, [](char c) { return http::is(c, http::kToken); });
    if (left_.starts_with('=')) {
      left_.remove_prefix(1);
      member.value =
          left_.starts_with('"')
              ? quoted(member.well_formed)
              : http::take_while(left_, [](char c) { return http::is(c, http::kToken); });
    }
    (void)http::take_while(left_, [](char c) { return http::is(c, http::kBlank); });
    if (member.name.empty() || (!left_.empty() && left_.front() != ',')) {
      member.well_formed = false;
      skip_rest();
    }
    return true;
  }

 private:
  std::string_view quoted(bool& closed) {
    std::size_t at = 1;
    while (at < left_.size() && left_[at] != '"') at += left_[at] == '\\' ? 2 : 1;
    closed = at < left_.size();
    const std::string_view inside = left_.substr(1, std::min(at, left_.size()) - 1);
    left_.remove_prefix(std::min(at + 1, left_.size()));
    return inside;
  }
  void skip_rest() {
    bool ignored = false;
    while (!left_.empty() && left_.front() != ',') {
      if (left_.front() == '"')
        (void)quoted(ignored);
      else
        left_.remove_prefix(1);
    }
  }

  std::string_view left_;
};

void lower_to(std::optional<Seconds>& time, Seconds value) {
  time = time ? std::min(*time, value) : value;
}

void add_names(std::string_view list, std::vector<std::string>& names) {
  http::each_member(list, [&](std::string_view name) {
    if (name.empty()) return true;
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), http::lower);
    names.push_back(std::move(lower));
    return true;
  });
}

// Without field names, or with what are none, the directive means the whole answer.
void restrict_fields(const Member& member, bool& whole, std::vector<std::string>& names) {
  const std::size_t before = names.size();
  if (member.well_formed && member.value) add_names(*member.value, names);
  whole |= names.size() == before ||
           !std::ranges::all_of(names, [](const auto& name) { return http::is_token(name); });
}

void add_time(const Member& member, const Time& time, Directives& out) {
  const bool any_staleness = time.member == &Directives::max_stale && !member.value;
  if (any_staleness && member.well_formed) return lower_to(out.*time.member, kForever);
  const auto value = member.value ? parse_seconds(*member.value) : std::nullopt;
  lower_to(out.*time.member, member.well_formed && value ? *value : 0);
}

void add(const Member& member, Directives& out) {
  const auto is = [&](std::string_view name) { return same_ignoring_case(member.name, name); };
  for (const Flag& flag : kRestrictions)
    if (is(flag.name)) out.*flag.member = true;
  for (const Flag& flag : kPermissions)
    if (is(flag.name) && member.well_formed) out.*flag.member = true;
  for (const Time& time : kTimes)
    if (is(time.name)) add_time(member, time, out);
  if (is("private")) restrict_fields(member, out.is_private, out.private_fields);
  if (is("no-cache")) restrict_fields(member, out.no_cache, out.no_cache_fields);
}

// A directive of a known type, from a structured field; false when the type is wrong.
bool add_targeted(const structured::Entry& entry, Directives& out) {
  using structured::Type;
  for (const Time& time : kTimes) {
    if (entry.key != time.name) continue;
    if (entry.type != Type::integer) return false;
    out.*time.member = std::clamp<Seconds>(entry.integer, 0, kForever);
    return true;
  }
  const auto set = [&](bool& flag) {
    if (entry.type != Type::boolean) return false;
    flag = entry.boolean;
    return true;
  };
  for (const Flag& flag : kRestrictions)
    if (entry.key == flag.name) return set(out.*flag.member);
  for (const Flag& flag : kPermissions)
    if (entry.key == flag.name) return set(out.*flag.member);
  // With field names they are strings; the whole answer is restricted then.
  const auto restricts = [&](bool& flag) {
    if (entry.type != Type::string) return set(flag);
    flag = true;
    return true;
  };
  if (entry.key == "private") return restricts(out.is_private);
  if (entry.key == "no-cache") return restricts(out.no_cache);
  return true;
}

}  // namespace

std::optional<Seconds> parse_seconds(std::string_view text) noexcept {
  if (text.empty() || !http::all(text, http::kDigit)) return std::nullopt;
  Seconds value = 0;
  for (const char digit : text) value = std::min(value * 10 + (digit - '0'), kForever);
  return value;
}

Directives parse_cache_control(std::span<const std::string_view> lines) {
  Directives out;
  for (const std::string_view line : lines) {
    Members members(line);
    Member member;
    while (members.next(member)) add(member, out);
  }
  return out;
}

std::optional<Directives> parse_targeted(std::span<const std::string_view> lines) {
  const auto entries = structured::parse_dictionary(lines);
  if (!entries || entries->empty()) return std::nullopt;
  Directives out;
  for (const structured::Entry& entry : *entries)
    if (!add_targeted(entry, out)) return std::nullopt;
  return out;
}

}  // namespace clockwise::cache
