// What was purged and when, as proxies that share a store tell each other.
//
// A proxy that purges writes the rule into its list, and its list into the shared store; the others
// merge it into theirs. Merging is the union, whatever the order, so that lists that know of each
// other become equal. What a list names is not to be used if it was asked for before. Clocks of
// proxies may differ by kSkew. A list has an end: the oldest rules become one for all that is as
// old. A value; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/purge.h"

namespace clockwise::cache {

class PurgeList {
 public:
  struct Rule {
    PurgeRule rule;
    std::int64_t time_ms = 0;  // since 1970, by the clock of the proxy that was asked
    bool own = false;          // that proxy is this one

    [[nodiscard]] bool operator==(const Rule& other) const noexcept;
  };

  static constexpr std::int64_t kSkew = 2'000;
  static constexpr std::size_t kMostOctets = 256 * 1024;

  // The newest last.
  [[nodiscard]] const std::vector<Rule>& rules() const noexcept { return rules_; }
  [[nodiscard]] bool empty() const noexcept { return rules_.empty() && forgotten_ms_ == 0; }
  // The newest rule that the list has let go of: who has not looked at it since may have missed
  // some.
  [[nodiscard]] std::int64_t forgotten_ms() const noexcept { return forgotten_ms_; }

  // Returns the time that the rule gets: later than any of this proxy before.
  std::int64_t add(const PurgeRule& rule, std::int64_t now_ms);
  // Returns what this list did not have.
  std::vector<Rule> merge(const PurgeList& other);

  // What is to be made of an answer that was asked for then.
  enum class Effect : std::uint8_t { none, stale, gone };
  [[nodiscard]] Effect on(std::string_view key, std::string_view tags, std::int64_t asked_ms) const;
  // When an answer of this proxy was asked for, as the others shall see it: later than the purges
  // that this proxy knew then, whatever kSkew allows.
  [[nodiscard]] std::int64_t as_seen(std::string_view key, std::string_view tags,
                                     std::int64_t asked_ms) const;

  // Equal lists have equal octets. `own` is not told.
  [[nodiscard]] std::string pack() const;
  // Nothing: it is none.
  [[nodiscard]] static std::optional<PurgeList> unpack(std::string_view packed);

 private:
  void put(Rule rule);
  void trim();
  [[nodiscard]] bool is_forgotten(const Rule& one) const noexcept;
  template <class Which>
  void drop_if(Which which);

  std::vector<Rule> rules_;    // by time
  std::size_t octets_ = 0;     // of them, packed
  std::int64_t floor_ms_ = 0;  // all that was asked for before is gone
  std::int64_t forgotten_ms_ = 0;
};

}  // namespace clockwise::cache
