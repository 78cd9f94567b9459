// What the ring of a pool is like (see warnings.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "config/forecast.h"
#include "config/warnings.h"

namespace clockwise::config {
namespace {

using ring::Placement;

constexpr double kWideSpread = 0.10;    // of a server's share, expected: one standard deviation
constexpr double kCoarseWeight = 0.01;  // a weight may be this far off after rounding to points
// A server owns too much where that is both much and no wonder of its points: an eighth above its
// share, and three standard deviations. The fullest of N servers strays by some sqrt(2 ln N) of
// them, 2.1 of ten and 3.0 of a hundred; that points are few is told by the spread itself.
constexpr double kTooMuch = 0.125;
constexpr double kTooMuchDeviations = 3;
// A ring that is built for its figures has at most so many points: some 30 ms.
constexpr std::uint64_t kMaxBuilt = 1 << 18;
constexpr std::size_t kSampleKeys = 2'000;
// Keys that count up, as keys do: what stands before the number.
constexpr std::array<std::string_view, 3> kLikeKeys{"/item/", "user:", ""};
// So many times the keys that a server's part of the ring is worth are too many: with no fewer than
// these it is more than four standard deviations.
constexpr double kUneven = 1.4;
constexpr double kEnoughKeys = 125;
constexpr std::size_t kLibmemcachedServers = 100;

// A server's share of a ring of equal points strays less when keys go to the nearest one.
constexpr double kNearest = 0.7;

// Is there a circle of points, so that shares stray by chance? Else a table, exact.
bool has_circle(const ring::Scheme& scheme) {
  switch (scheme.placement) {
    case Placement::nginx_hash:
    case Placement::maglev:
    case Placement::modulo:
      return false;
    case Placement::twemproxy:
      return scheme.distribution != "modula";
    default:
      return true;
  }
}

double percent(double ratio) { return 100 * ratio; }

class RingWarnings {
 public:
  RingWarnings(const ServerList& list, const WrittenRing& ring, const Field& where)
      : list_(list), ring_(ring), where_(where), members_(members_of(list.servers)) {
    points_ = ring::point_counts(scheme(), members_);
    for (std::size_t i = 0; i < list.servers.size(); ++i) {
      if (!list.servers[i].on_ring()) continue;
      owners_.push_back(i);
      weight_ += list.servers[i].weight;
      total_ += static_cast<double>(points_[i]);
    }
  }

  void warn() {
    if (owners_.size() < 2 || shares_owners()) return;
    warn_of_peers_limit();
    if (has_circle(scheme()) && total_ > 0) {
      warn_of_wide_spread();
      warn_of_coarse_weights();
    }
    if (std::reduce(points_.begin(), points_.end()) > kMaxBuilt) {
      if (!ring_.facts->monotone && ring_.scheme)
        at_scheme(
            "moves keys between servers that stay as they are when another comes, goes or "
            "changes its weight; scheme clockwise does not");
      return;
    }
    const auto built = ring::build(scheme(), members_);
    if (!built) return;
    if (!warn_of_key_hash(*built.value())) warn_of_overload(*built.value());
    warn_of_needless_moves(*built.value());
  }

 private:
  [[nodiscard]] const ring::Scheme& scheme() const { return ring_.ring.scheme; }
  [[nodiscard]] const std::string& name(std::size_t i) const { return list_.servers[i].name; }

  // Two entries of one label are one owner to nginx, which has a warning of its own.
  [[nodiscard]] bool shares_owners() const {
    if (ring_.facts->placement != Placement::nginx) return false;
    std::set<std::string_view> labels;
    for (const ring::Member& member : members_) labels.insert(member.label);
    return labels.size() < members_.size();
  }

  static void at(const std::optional<Field>& field, const Field& otherwise,
                 std::string_view message) {
    const Field& place = field ? *field : otherwise;
    place.warn_at(place.place(), message);
  }
  void at_scheme(std::string_view message) const { at(ring_.scheme, where_, message); }
  void at_hash(std::string_view message) const {
    at(ring_.hash ? ring_.hash : ring_.scheme, where_, message);
  }
  void at_weight(std::size_t i, std::string_view message) const {
    where_.warn_at(list_.places[i].weight, message, step(i, "weight"));
  }

  void warn_of_peers_limit() const {
    const bool libmemcached =
        scheme().placement == Placement::ketama || scheme().placement == Placement::libmemcached ||
        (scheme().placement == Placement::spymemcached && scheme().form == "libmemcached");
    if (libmemcached && list_.servers.size() > kLibmemcachedServers)
      at_scheme(
          fmt::format("libmemcached aborts with more than {} servers, here are {}: there is "
                      "no placement of its to agree with",
                      kLibmemcachedServers, list_.servers.size()));
  }

  // Of the share of a server with this many of all points: one standard deviation, relative.
  [[nodiscard]] double spread(std::size_t i) const {
    const auto owned = static_cast<double>(points_[i]);
    if (owned == 0) return 0;
    const double random = std::sqrt((total_ - owned) / (owned * (total_ + 1)));
    return scheme().placement == Placement::haproxy ? kNearest * random : random;
  }

  [[nodiscard]] std::string advice(std::size_t i) const {
    const auto owned = static_cast<double>(points_[i]);
    const double enough = 1 / (kWideSpread * kWideSpread);
    if (ring_.facts->default_points != 0) return "more points make it even";
    if (scheme().placement == Placement::envoy)
      return fmt::format("the {} points are for the whole ring, min_size: {:.0f} makes it even",
                         total_, std::ceil(total_ * enough / owned));
    if (scheme().placement == Placement::haproxy)
      return fmt::format(
          "a server has 16 for each unit of weight, weights {:.0f} times as large "
          "make it even",
          std::ceil(enough / owned));
    return "they are dealt out by weight, scheme clockwise has more";
  }

  void warn_of_wide_spread() const {
    std::optional<std::size_t> worst;
    for (const std::size_t i : owners_)
      if (spread(i) > (worst ? spread(*worst) : kWideSpread)) worst = i;
    if (!worst) return;
    const std::string message =
        fmt::format("{} for {} its share of the keys stray by about {:.0f} %; {}",
                    points_[*worst] == 1 ? "1 point" : fmt::format("{} points", points_[*worst]),
                    quoted(name(*worst)) + (points_[*worst] == 1 ? " lets" : " let"),
                    percent(spread(*worst)), advice(*worst));
    const bool all = std::ranges::all_of(
        owners_, [&](std::size_t i) { return points_[i] == 0 || spread(i) > kWideSpread; });
    if (!all)
      at_weight(*worst, message);
    else if (ring_.points)
      at(ring_.points, where_, message);
    else
      at_scheme(message);
  }

  // Equal weights are expressed whatever the rounding.
  void warn_of_coarse_weights() const {
    const auto [low, high] =
        std::ranges::minmax(owners_, {}, [&](std::size_t i) { return list_.servers[i].weight; });
    if (list_.servers[low].weight == list_.servers[high].weight) return;
    const auto worth = [&](std::size_t i) { return total_ * list_.servers[i].weight / weight_; };
    const auto error = [&](std::size_t i) {
      return std::abs(static_cast<double>(points_[i]) - worth(i)) / worth(i);
    };
    const std::size_t worst = *std::ranges::max_element(owners_, {}, error);
    if (error(worst) <= kCoarseWeight) return;
    at_weight(worst, fmt::format("{} is worth {:.2f} of the {} points, {} has {}: {:.0f} % off",
                                 list_.servers[worst].weight, worth(worst), total_,
                                 quoted(name(worst)), points_[worst], percent(error(worst))));
  }

  // How many keys that count up each server owns.
  [[nodiscard]] std::vector<std::size_t> owned(const ring::Ring& ring,
                                               std::string_view like) const {
    std::vector<std::size_t> keys(members_.size());
    for (std::size_t i = 0; i < kSampleKeys; ++i)
      ++keys[ring.owner(ring.hash(fmt::format("{}{}", like, i)))];
    return keys;
  }

  // Does one server have all keys, whatever its share of the positions? Then it is warned of.
  bool warn_of_key_hash(const ring::Ring& ring) const {
    if (ring_.facts->hashes.empty()) return false;
    const std::vector<std::size_t> keys = owned(ring, kLikeKeys.front());
    const auto top = static_cast<std::size_t>(std::ranges::max_element(keys) - keys.begin());
    const double share = static_cast<double>(keys[top]) / kSampleKeys;
    const double expected = list_.servers[top].weight / weight_;
    if (share < 0.9 || expected > 0.75) {
      warn_of_like_keys(ring);
      return false;
    }
    const bool short_hash = scheme().hash == "crc" || scheme().hash == "crc32";
    at_hash(fmt::format("{} owns {:.0f} % of the keys, its weight is {:.0f} %: {} {}",
                        quoted(name(top)), percent(share), percent(expected), scheme().hash,
                        short_hash ? "has 15 bits here, which end before the ring begins"
                                   : "does not spread keys over this ring"));
    return true;
  }

  void warn_of_like_keys(const ring::Ring& ring) const {
    double most = kUneven;
    std::string message;
    for (const std::string_view like : kLikeKeys) {
      const std::vector<std::size_t> keys = owned(ring, like);
      for (const std::size_t i : owners_) {
        const double fair = ring.shares()[i] * kSampleKeys;
        const auto owns = static_cast<double>(keys[i]);
        if (fair < kEnoughKeys || owns / fair <= most) continue;
        most = owns / fair;
        message = fmt::format(
            "of {} keys {}0, {}1, … {} has {}, its part of the ring is {:.0f}: {} "
            "spreads keys that are alike badly",
            kSampleKeys, like, like, quoted(name(i)), keys[i], fair, scheme().hash);
      }
    }
    if (!message.empty()) at_hash(message);
  }

  void warn_of_overload(const ring::Ring& ring) const {
    const auto expected = [&](std::size_t i) { return list_.servers[i].weight / weight_; };
    const auto ratio = [&](std::size_t i) { return ring.shares()[i] / expected(i); };
    const auto stray_of = [&](std::size_t i) { return has_circle(scheme()) ? spread(i) : 0; };
    const auto excess = [&](std::size_t i) {
      return ratio(i) - 1 - std::max(kTooMuchDeviations * stray_of(i), kTooMuch);
    };
    const std::size_t worst = *std::ranges::max_element(owners_, {}, excess);
    if (excess(worst) <= 0) return;
    const double stray = stray_of(worst);
    at_weight(worst,
              fmt::format("{} owns {:.2f} % of the keys, {:.2f} times the {:.2f} % of its weight{}",
                          quoted(name(worst)), percent(ring.shares()[worst]), ratio(worst),
                          percent(expected(worst)),
                          stray == 0 ? ""
                                     : fmt::format(": {:.1f} standard deviations of {:.1f} %",
                                                   (ratio(worst) - 1) / stray, percent(stray))));
  }

  void warn_of_needless_moves(const ring::Ring& ring) const {
    // Nobody chose the scheme that memcached pools have to begin with.
    if (!ring_.scheme) return;
    const Forecaster forecaster(scheme(), members_, ring);
    if (ring_.facts->takes_id) {
      warn_of_moving_ids(forecaster);
      return;
    }
    if (ring_.facts->monotone) return;
    if (const std::optional<Forecast> worst = forecaster.worst())
      at_scheme(fmt::format("{}; under scheme clockwise none would", text(*worst)));
  }

  void warn_of_moving_ids(const Forecaster& forecaster) const {
    const std::optional<Forecast> removal = forecaster.without_middle();
    if (!removal || removal->needless == 0) return;
    const std::vector<std::uint32_t> ids = ring::server_ids(members_);
    std::string pins;
    constexpr std::size_t kShown = 3;
    for (std::size_t i = 0; i < std::min(ids.size(), kShown); ++i)
      pins += fmt::format("{}{} has {}", i == 0 ? "" : ", ", quoted(name(i)), ids[i]);
    at_scheme(fmt::format("{}: those behind it would be counted anew. Pin their ids first: {}{}",
                          text(*removal), pins, ids.size() > kShown ? ", …" : ""));
  }

  static std::string text(const Forecast& forecast) {
    return fmt::format(
        "{} would move {:.1f} % of the keys, {:.1f} % needlessly, between servers that stay as "
        "they are",
        forecast.change, percent(forecast.moved), percent(forecast.needless));
  }

  const ServerList& list_;
  const WrittenRing& ring_;
  const Field& where_;
  std::vector<ring::Member> members_;
  std::vector<std::uint64_t> points_;  // by server
  std::vector<std::size_t> owners_;    // those on the ring
  double weight_ = 0;                  // of the owners
  double total_ = 0;                   // points of the owners
};

}  // namespace

void warn_of_ring(const ServerList& list, const WrittenRing& ring, const Field& where) {
  RingWarnings(list, ring, where).warn();
}

}  // namespace clockwise::config
