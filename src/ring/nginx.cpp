// nginx: `hash … consistent` and `hash …` without it (see builders.h).
#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <string>

#include "ring/builders.h"
#include "ring/circle.h"
#include "ring/hashes.h"
#include "ring/named_hash.h"
#include "ring/table.h"

namespace clockwise::ring {
namespace {

constexpr std::uint64_t kPointsPerWeight = 160;

bool is_unix_socket(std::string_view text) {
  constexpr std::string_view kPrefix = "unix:";
  return text.size() >= kPrefix.size() &&
         std::equal(kPrefix.begin(), kPrefix.end(), text.begin(),
                    [](char lower, char c) { return c == lower || c == lower - 'a' + 'A'; });
}

// What the peer hashes of the text of a `server` line: the host, NUL, the port.
std::string hashed_text(std::string_view text) {
  if (is_unix_socket(text)) return std::string(text.substr(5)) + '\0';
  std::size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  const bool has_port = digits < text.size() && digits > 0 && text[digits - 1] == ':';
  std::string result(text.substr(0, has_port ? digits - 1 : text.size()));
  result += '\0';
  if (has_port) result += text.substr(digits);
  return result;
}

// The lines with one text are one owner: the first of them that is live, with the largest weight of
// them.
struct Owner {
  ServerIndex server;
  std::uint64_t points;
};

// In the order of the list.
std::vector<Owner> owners_of(Members members) {
  std::map<std::string_view, std::size_t> places;
  std::vector<Owner> owners;
  for (ServerIndex i = 0; i < members.size(); ++i) {
    if (members[i].weight <= 0) continue;
    const auto points = kPointsPerWeight * static_cast<std::uint64_t>(members[i].weight);
    const auto [place, fresh] = places.try_emplace(members[i].label, owners.size());
    if (fresh) {
      owners.push_back({i, points});
      continue;
    }
    Owner& owner = owners[place->second];
    owner.points = std::max(owner.points, points);
    if (!members[owner.server].live && members[i].live) owner.server = i;
  }
  return owners;
}

// A chain: each point is the checksum of the text and the point before it.
void add_points(const Owner& owner, std::string_view label, Points& points) {
  const std::uint32_t base = crc32(hashed_text(label));
  std::uint32_t position = 0;
  for (std::uint64_t i = 0; i < owner.points; ++i) {
    const char before[] = {static_cast<char>(position), static_cast<char>(position >> 8),
                           static_cast<char>(position >> 16), static_cast<char>(position >> 24)};
    position = crc32_after(base, {before, sizeof before});
    points.push_back({position, owner.server});
  }
}

constexpr NamedHash kConsistent = named_hash<crc32>("", "crc32", 32);
constexpr NamedHash kModulo = named_hash<crc32_high>("", "crc32_high", 15);

// The table of the live servers. The peer draws from the list of all servers and draws again while
// it meets one that is down, so its hash depends on the list.
class DrawAgainRing final : public TableRing {
 public:
  DrawAgainRing(Members members, const Scheme& scheme, std::vector<ServerIndex> slots)
      : TableRing(hashing(members, scheme), std::move(slots), members.size(), true) {
    std::uint64_t live = 0;
    for (const Member& member : members) {
      const auto weight = static_cast<std::uint64_t>(member.weight);
      if (weight == 0) continue;
      all_ += weight;
      stretches_.push_back({all_, live, member.live});
      if (member.live) live += weight;
    }
    live_ = live;
  }

 private:
  // The draws that fall on one server.
  struct Stretch {
    std::uint64_t end;         // behind its last draw
    std::uint64_t first_slot;  // of the server, or of the next one that is live
    bool live;
  };
  static constexpr unsigned kTries = 20;

  static Hashing hashing(Members members, const Scheme& scheme) {
    std::string name = "nginx draws";
    std::uint64_t live_slots = 0;
    for (const Member& member : members) {
      const auto weight = static_cast<std::uint64_t>(member.weight);
      if (weight == 0) continue;
      name += (member.live ? " +" : " -") + std::to_string(weight);
      if (member.live) live_slots += weight;
    }
    return {hash_key, std::move(name), static_cast<Arc>(live_slots), scheme.part()};
  }

  static Position hash_key(const Ring& ring, std::string_view key) noexcept {
    return static_cast<const DrawAgainRing&>(ring).draw(key);
  }

  // A slot of the table.
  [[nodiscard]] Position draw(std::string_view key) const noexcept {
    if (live_ == 0) return 0;
    std::uint64_t sum = crc32_high(key);
    for (unsigned attempt = 1;; ++attempt) {
      const std::uint64_t drawn = sum % all_;
      const Stretch& met = *std::upper_bound(
          stretches_.begin(), stretches_.end(), drawn,
          [](std::uint64_t draw, const Stretch& stretch) { return draw < stretch.end; });
      if (met.live) return met.first_slot + drawn - start_of(met);
      if (attempt > kTries) return met.first_slot % live_;
      char digits[4];
      const char* const end = std::to_chars(digits, digits + sizeof digits, attempt).ptr;
      const std::uint32_t number = crc32({digits, static_cast<std::size_t>(end - digits)});
      sum += (crc32_after(number, key) >> 16) & 0x7fff;
    }
  }
  [[nodiscard]] std::uint64_t start_of(const Stretch& stretch) const noexcept {
    return &stretch == stretches_.data() ? 0 : (&stretch)[-1].end;
  }

  std::vector<Stretch> stretches_;
  std::uint64_t all_ = 0, live_ = 0;
};

}  // namespace

std::vector<std::uint64_t> nginx_counts(const Scheme&, Members members) {
  std::vector<std::uint64_t> counts(members.size(), 0);
  for (const Owner& owner : owners_of(members)) counts[owner.server] = owner.points;
  return counts;
}

BuiltRing build_nginx(const Scheme& scheme, Members members) {
  const std::vector<Owner> owners = owners_of(members);
  Points points;
  for (const Owner& owner : owners) add_points(owner, members[owner.server].label, points);
  points = sorted_by_position(points, kConsistent.bits);

  const auto lines = static_cast<std::size_t>(std::count_if(
      members.begin(), members.end(), [](const Member& member) { return member.weight > 0; }));
  const bool by_order = owners.size() < lines || servers_share_a_position(points);
  // Of two servers at one position the later one loses its point for good, even to a server that is
  // down.
  const auto lost = [](const Point& kept, const Point& point) {
    return kept.position == point.position;
  };
  points.erase(std::unique(points.begin(), points.end(), lost), points.end());
  lead_past_the_dead(points, members);
  return std::make_shared<const CircleRing>(
      circle_hashing(kConsistent, kConsistent.bits, scheme), Rule::successor,
      by_order ? CircleRing::Ties::listed : CircleRing::Ties::settled, std::move(points),
      members.size());
}

BuiltRing build_nginx_hash(const Scheme& scheme, Members members) {
  const bool all_live = std::all_of(members.begin(), members.end(), [](const Member& member) {
    return member.live || member.weight <= 0;
  });
  std::vector<ServerIndex> slots = weighted_list(members);
  if (all_live)
    return std::make_shared<const TableRing>(table_hashing(kModulo, scheme), std::move(slots),
                                             members.size(), true);
  return std::make_shared<const DrawAgainRing>(members, scheme, std::move(slots));
}

}  // namespace clockwise::ring
