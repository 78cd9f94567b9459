// What takes part in an experiment: any placement scheme of the product, and what the literature
// sets beside a ring.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ring/scheme.h"
#include "simulate/change.h"

namespace clockwise::simulate {

enum class Kind : std::uint8_t {
  ring,            // a scheme of the product, as ring/scheme.h builds it
  bounded,         // the same ring with bounded loads (bounded.h)
  slots,           // fixed slots (slots.h)
  rendezvous,      // highest random weight (rendezvous.h)
  jump,            // jump hash (jump.h)
  siphash,         // a published program whose servers are numbers (ring/literature.h), its ring
  siphash_modulo,  // and its control; both for presets alone
};

struct Contestant {
  Kind kind = Kind::ring;
  ring::Scheme scheme;    // ring, bounded; of siphash only the points
  double balance = 1.25;  // bounded: most keys of a server over its fair part
};

// As `--scheme` takes it: the name of a placement scheme or of a kind. The rings for presets alone
// go by the scheme of their family, custom and modulo.
[[nodiscard]] std::string_view name(const Contestant& contestant) noexcept;
[[nodiscard]] std::vector<std::string_view> names();
// With the scheme's own defaults; nothing when no contestant has the name.
[[nodiscard]] std::optional<Contestant> contestant(std::string_view name);

// Does a sweep over numbers of points mean anything to it?
[[nodiscard]] bool takes_points(const Contestant& contestant) noexcept;

// Where each key goes before and after a change. Called for every key of the experiment in order:
// with bounded loads the owner depends on the keys before. One thread at a time.
struct Places {
  using Place = std::function<ring::ServerIndex(std::string_view key)>;

  Place before, after;  // yield an index of the list of that side
  // Points of one server on the ring after the change, the mean of them; nothing without a ring.
  std::optional<std::uint64_t> points;
};

// `keys` is how many there will be. Fails when the scheme cannot be built or does not take these
// weights.
[[nodiscard]] Result<Places> places(const Contestant& contestant, const Change& change,
                                    std::uint64_t keys);

}  // namespace clockwise::simulate
