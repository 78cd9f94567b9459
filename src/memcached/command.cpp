#include "memcached/command.h"

namespace clockwise::memcached {

bool is_repeatable(Verb verb) noexcept {
  return is_retrieval(verb) || verb == Verb::set || verb == Verb::remove || verb == Verb::touch ||
         verb == Verb::meta_get || verb == Verb::meta_debug || verb == Verb::meta_noop ||
         verb == Verb::version;
}

}  // namespace clockwise::memcached
