// Which server is asked for a request: its home, or the next on the walk.
#pragma once

#include <optional>
#include <span>

#include "ring/ring.h"
#include "upstream/routing.h"

namespace clockwise::upstream {

// How far requests may stray from home, and whether health counts.
struct Rules {
  config::Failover failover = config::Failover::next;
  bool panic = false;
};

// The first server on the walk from `position` that is not `unusable` and that was not `tried` yet;
// else the first that was not tried: rather one that is thought ill than an error. In a panic the
// home is asked first, whatever is thought of it. With `fail_fast` nobody but the home is asked.
// Nothing: nobody is left. Pure. REQUIRES: the ring is not empty.
[[nodiscard]] std::optional<ring::ServerIndex> next_server(const ring::Ring& ring,
                                                           ring::Position position,
                                                           std::span<const ring::ServerIndex> tried,
                                                           const Rules& rules,
                                                           const ring::Excluded& unusable);

struct Choice {
  ring::ServerIndex server = 0;
  bool trial = false;  // it is on trial, and the answer of this request decides (health_board.h)
};

// The next server by what the pool's board says now; one that awaits its trial counts as usable,
// and this request may become the trial. REQUIRES: the ring is not empty.
//
// For requests that cannot simply go home: while all are well, nothing but HealthBoard::all_well
// needs to be asked.
[[nodiscard]] std::optional<Choice> choose(const Pool& pool, ring::Position position,
                                           std::span<const ring::ServerIndex> tried);

// Whom to send a second request beside one that is slow: like `choose`, but only a server that is
// thought well. Nothing with `failover: fail_fast`.
[[nodiscard]] std::optional<ring::ServerIndex> choose_second(
    const Pool& pool, ring::Position position, std::span<const ring::ServerIndex> tried);

}  // namespace clockwise::upstream
