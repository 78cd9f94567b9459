#include "cache/purge_list.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/crc32c.h"
#include "cache/packed.h"

namespace clockwise::cache {
namespace {

using Rule = PurgeList::Rule;

constexpr std::string_view kMagic = "clg\1";  // with the version
constexpr std::size_t kFixed = 4 + 8 + 8 + 4 + 4, kFixedOfRule = 1 + 1 + 8 + 2;
constexpr std::int64_t kLatest = std::int64_t{1} << 52;

auto order_of(const Rule& one) {
  return std::tuple(one.time_ms, one.rule.scope, one.rule.soft, std::string_view(one.rule.text));
}

bool is_before(const Rule& a, const Rule& b) { return order_of(a) < order_of(b); }

bool same_names(const Rule& a, const Rule& b) {
  return a.rule.scope == b.rule.scope && a.rule.soft == b.rule.soft && a.rule.text == b.rule.text;
}

// Nothing is left to do for `old` where `newer` stands.
bool covers(const Rule& newer, const Rule& old) {
  if (newer.time_ms < old.time_ms || (newer.rule.soft && !old.rule.soft)) return false;
  return newer.rule.scope == PurgeScope::all ||
         (newer.rule.scope == old.rule.scope && newer.rule.text == old.rule.text);
}

std::size_t octets_of(const Rule& one) { return kFixedOfRule + one.rule.text.size(); }

}  // namespace

bool PurgeList::Rule::operator==(const Rule& other) const noexcept {
  return time_ms == other.time_ms && same_names(*this, other);
}

std::int64_t PurgeList::add(const PurgeRule& rule, std::int64_t now_ms) {
  for (const Rule& one : rules_)
    if (one.own) now_ms = std::max(now_ms, one.time_ms + 1);
  now_ms = std::min(now_ms, kLatest);
  const bool all = rule.scope == PurgeScope::all;
  put({.rule = {.scope = rule.scope, .text = all ? std::string() : rule.text, .soft = rule.soft},
       .time_ms = now_ms,
       .own = true});
  trim();
  return now_ms;
}

std::vector<Rule> PurgeList::merge(const PurgeList& other) {
  floor_ms_ = std::max(floor_ms_, other.floor_ms_);
  forgotten_ms_ = std::max(forgotten_ms_, other.forgotten_ms_);
  std::vector<Rule> fresh;
  for (const Rule& one : other.rules_) {
    if (is_forgotten(one) || std::ranges::binary_search(rules_, one, is_before)) continue;
    const auto says_it = [&](const Rule& mine) { return covers(mine, one); };
    if (!std::ranges::any_of(rules_, says_it)) fresh.push_back(one);
  }
  for (Rule& one : fresh) {
    one.own = false;
    put(one);
  }
  drop_if([&](const Rule& one) { return is_forgotten(one); });
  trim();
  return fresh;
}

bool PurgeList::is_forgotten(const Rule& one) const noexcept {
  return one.time_ms <= (one.rule.scope == PurgeScope::url ? forgotten_ms_ : floor_ms_);
}

template <class Which>
void PurgeList::drop_if(Which which) {
  std::erase_if(rules_, [&](const Rule& one) {
    const bool goes = which(one);
    if (goes) octets_ -= octets_of(one);
    return goes;
  });
}

void PurgeList::put(Rule rule) {
  drop_if([&](const Rule& one) { return covers(rule, one); });
  octets_ += octets_of(rule);
  rules_.insert(std::ranges::upper_bound(rules_, rule, is_before), std::move(rule));
}

// Rules of single URLs go first: what they name has been deleted as well.
void PurgeList::trim() {
  while (kFixed + octets_ > kMostOctets) {
    auto oldest =
        std::ranges::find(rules_, PurgeScope::url, [](const Rule& one) { return one.rule.scope; });
    if (oldest == rules_.end()) {
      oldest = rules_.begin();
      floor_ms_ = std::max(floor_ms_, oldest->time_ms);
    }
    forgotten_ms_ = std::max(forgotten_ms_, oldest->time_ms);
    octets_ -= octets_of(*oldest);
    rules_.erase(oldest);
  }
}

PurgeList::Effect PurgeList::on(std::string_view key, std::string_view tags,
                                std::int64_t asked_ms) const {
  if (floor_ms_ > 0 && asked_ms < floor_ms_ + kSkew) return Effect::gone;
  Effect effect = Effect::none;
  for (auto one = rules_.rbegin(); one != rules_.rend(); ++one) {
    if (asked_ms >= one->time_ms + kSkew) break;
    if (!one->rule.names(key, tags)) continue;
    if (!one->rule.soft) return Effect::gone;
    effect = Effect::stale;
  }
  return effect;
}

std::int64_t PurgeList::as_seen(std::string_view key, std::string_view tags,
                                std::int64_t asked_ms) const {
  std::int64_t seen_ms = asked_ms;
  for (auto one = rules_.rbegin(); one != rules_.rend(); ++one) {
    if (asked_ms >= one->time_ms + kSkew) break;
    if (one->own && one->time_ms <= asked_ms && one->rule.names(key, tags))
      seen_ms = std::max(seen_ms, one->time_ms + kSkew);
  }
  return seen_ms;
}

std::string PurgeList::pack() const {
  std::string out(kMagic);
  out.reserve(kFixed + octets_);
  pack_number(floor_ms_, out);
  pack_number(forgotten_ms_, out);
  pack_number(static_cast<std::uint32_t>(rules_.size()), out);
  for (const Rule& one : rules_) {
    pack_number(static_cast<std::uint8_t>(one.rule.scope), out);
    pack_number(static_cast<std::uint8_t>(one.rule.soft ? 1 : 0), out);
    pack_number(one.time_ms, out);
    pack_number(static_cast<std::uint16_t>(one.rule.text.size()), out);
    out += one.rule.text;
  }
  pack_number(crc32c(out), out);
  return out;
}

std::optional<PurgeList> PurgeList::unpack(std::string_view packed) {
  if (packed.size() < kFixed || packed.size() > kMostOctets || !packed.starts_with(kMagic))
    return std::nullopt;
  const std::string_view summed = packed.substr(0, packed.size() - sizeof(std::uint32_t));
  if (Unpacker(packed.substr(summed.size())).number<std::uint32_t>() != crc32c(summed))
    return std::nullopt;
  Unpacker octets(summed.substr(kMagic.size()));
  const auto is_time = [](std::int64_t ms) { return ms >= 0 && ms <= kLatest; };
  PurgeList list;
  list.floor_ms_ = octets.number<std::int64_t>();
  list.forgotten_ms_ = octets.number<std::int64_t>();
  if (!is_time(list.floor_ms_) || !is_time(list.forgotten_ms_)) return std::nullopt;
  auto count = octets.number<std::uint32_t>();
  for (; count > 0 && octets.good(); --count) {
    Rule one;
    const auto scope = octets.number<std::uint8_t>();
    const auto soft = octets.number<std::uint8_t>();
    one.time_ms = octets.number<std::int64_t>();
    one.rule.text = octets.text(octets.number<std::uint16_t>());
    if (scope > static_cast<std::uint8_t>(PurgeScope::all) || soft > 1 || !is_time(one.time_ms))
      return std::nullopt;
    one.rule.scope = static_cast<PurgeScope>(scope);
    one.rule.soft = soft == 1;
    if (one.rule.scope == PurgeScope::all && !one.rule.text.empty()) return std::nullopt;
    if (!list.rules_.empty() && !is_before(list.rules_.back(), one)) return std::nullopt;
    if (list.is_forgotten(one)) return std::nullopt;
    list.octets_ += octets_of(one);
    list.rules_.push_back(std::move(one));
  }
  if (!octets.good() || !octets.rest().empty()) return std::nullopt;
  return list;
}

}  // namespace clockwise::cache
