#include "upstream/pool_key.h"

namespace clockwise::upstream {

http::KeyTemplate key_template(const config::Ring& ring) {
  return http::KeyTemplate::parse(ring.key, ring.key_ignore).value();
}

bool same_key(const config::Ring& before, const config::Ring& after) {
  return before.key == after.key && before.scheme.part() == after.scheme.part() &&
         before.key_ignore == after.key_ignore;
}

bool same_positions(const Side& before, const Side& after) {
  const ring::Layout &was = before.ring->layout(), &is = after.ring->layout();
  return same_key(before.pool->ring, after.pool->ring) && was.keying == is.keying &&
         was.positions == is.positions;
}

}  // namespace clockwise::upstream
