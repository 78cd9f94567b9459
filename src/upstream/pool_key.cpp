#include "upstream/pool_key.h"

namespace clockwise::upstream {

http::KeyTemplate key_template(const config::Ring& ring) {
  return http::KeyTemplate::parse(ring.key, ring.key_ignore).value();
}

}  // namespace clockwise::upstream
