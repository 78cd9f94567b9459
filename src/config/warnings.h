// What is valid in a pool, but hardly meant: each with its place and, where there is one, its
// figure for this pool. Never a reason to refuse anything.
#pragma once

#include "config/servers.h"

namespace clockwise::config {

// About names, labels, addresses and states. `where` is the list. REQUIRES: ring.facts.
void warn_of_servers(const ServerList& list, const WrittenRing& ring, const Field& where);

// About what the ring of these servers is like: shares that stray, weights that points cannot
// express, a server that owns too much, a change that would move keys needlessly, limits of the
// peer. Builds the real ring where that takes a few milliseconds. REQUIRES: ring.facts.
void warn_of_ring(const ServerList& list, const WrittenRing& ring, const Field& where);

}  // namespace clockwise::config
